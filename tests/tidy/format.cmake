# cmake -D formatter= -D root= -P format.cmake: fails on the files that are not formatted.
file(GLOB_RECURSE files
  ${root}/include/*.h ${root}/sim/*.h ${root}/sim/*.cpp ${root}/tools/*.h ${root}/tools/*.cpp
  ${root}/tests/*.h ${root}/tests/*.cpp)
execute_process(COMMAND ${formatter} --dry-run -Werror ${files}
  RESULT_VARIABLE result ERROR_VARIABLE faults)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${faults}\nrun: ${formatter} -i FILE")
endif()

# cmake -D build= -D scratch= -D project= -D generator= -D compiler= -P check.cmake
set(prefix ${scratch}/prefix)
file(REMOVE_RECURSE ${scratch})
file(MAKE_DIRECTORY ${scratch}/elsewhere)

function(must)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${scratch}/elsewhere
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${result}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

must(${CMAKE_COMMAND} --install ${build} --prefix ${prefix})
must(${CMAKE_COMMAND} -S ${project} -B ${scratch}/build -G ${generator}
  -DCMAKE_CXX_COMPILER=${compiler} -DCMAKE_PREFIX_PATH=${prefix}
  -DCMAKE_RUNTIME_OUTPUT_DIRECTORY=${prefix}/bin)
must(${CMAKE_COMMAND} --build ${scratch}/build)

file(GLOB scenarios ${prefix}/share/foretrain/scenarios/*.json)
if(NOT scenarios)
  message(FATAL_ERROR "no scenario was installed")
endif()
foreach(path IN LISTS scenarios)
  get_filename_component(name ${path} NAME_WE)
  must(${prefix}/bin/consumer ${name})
  if(NOT output MATCHES "tp [0-9]+ pp [0-9]+")
    message(FATAL_ERROR "the consumer read ${name} as: ${output}")
  endif()
  must(${prefix}/bin/foretrain check ${name})
endforeach()

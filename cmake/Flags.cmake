# Compiler flags of everything that is ours, as one interface target.
add_library(foretrain_flags INTERFACE)
# In a unit a local name may hide another file's, which is nobody's fault.
set(shadows -Wshadow)
if(CMAKE_UNITY_BUILD)
  set(shadows "")
endif()
target_compile_options(foretrain_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion ${shadows} -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Wnull-dereference -Wdouble-promotion
  # Part of -Wconversion in clang only; indices are int32 throughout.
  -Wno-sign-conversion
  # The same sums on every compiler and machine: no fused multiply-add behind our back.
  -ffp-contract=off)
# GCC 12 sees null pointers and overlapping copies inside std::vector and std::string when it
# optimises (GCC PR 105651 and its kin); the other compiler and clang-tidy look for the real ones.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(foretrain_flags INTERFACE -Wno-restrict -Wno-null-dereference)
endif()
if(foretrain_WERROR)
  target_compile_options(foretrain_flags INTERFACE -Werror)
endif()
if(foretrain_SANITIZE)
  target_compile_options(foretrain_flags INTERFACE
    -fsanitize=${foretrain_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(foretrain_flags INTERFACE -fsanitize=${foretrain_SANITIZE})
endif()
if("fuzz" IN_LIST foretrain_TEST_PARTS)
  # libFuzzer steers by the coverage of the library itself.
  target_compile_options(foretrain_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

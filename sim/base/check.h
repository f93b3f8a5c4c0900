#pragma once

#include <cstdio>
#include <cstdlib>

/// A broken promise inside the project itself: says where and ends the process. Stays on in
/// release. User input never reaches it; that is what Diagnostic is for.
#define FORETRAIN_CHECK(condition, ...)                                                  \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: check failed: %s: ", __FILE__, __LINE__, #condition); \
      std::fprintf(stderr, __VA_ARGS__);                                                 \
      std::fputc('\n', stderr);                                                          \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

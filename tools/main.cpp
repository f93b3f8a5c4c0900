#include "foretrain/simulate.h"

#include <cstdio>

int main() {
  std::puts(std::string(foretrain::version()).c_str());
  return 0;
}

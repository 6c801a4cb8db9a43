// Exits with the level of this processor: asked by CMake for a build for this machine.
#include "level.hpp"

int main() { return kb::processor_level(); }

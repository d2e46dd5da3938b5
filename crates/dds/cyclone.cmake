# Options for the Cyclone DDS that the cyclors crate builds; cargo hands this file to cmake
# (.cargo/config.toml), as cyclors has no feature for them.

# RTPS over TCP is off by default.
set(ENABLE_TCP ON CACHE BOOL "")
# For tests: -O2 -g takes twice as long to compile.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1 -DNDEBUG" CACHE STRING "")
# And it needs corrections, made on copies: see docs/adr.
set(CMAKE_PROJECT_CycloneDDS_INCLUDE "${CMAKE_CURRENT_LIST_DIR}/cyclone-corrections.cmake")

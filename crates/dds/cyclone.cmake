# Options for the Cyclone DDS that the cyclors crate builds; cargo hands this file to cmake
# (.cargo/config.toml), as cyclors has no feature for them.

# RTPS over TCP is off by default.
set(ENABLE_TCP ON CACHE BOOL "")
# And it needs a correction, made on a copy: see docs/adr.
set(CMAKE_PROJECT_CycloneDDS_INCLUDE "${CMAKE_CURRENT_LIST_DIR}/cyclone-tcp.cmake")

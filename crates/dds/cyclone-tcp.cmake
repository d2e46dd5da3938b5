# Corrects the socket waitset of Cyclone DDS 11.0.1, in a copy inside the build directory:
# - An entry is given to epoll before its fields are set. A TCP connection that brings data at
#   once is then read half-initialised, and the process aborts.
# - The array of entries moves when the ninth connection comes, and epoll keeps the old pointers.
# Both concern TCP alone: with UDP all sockets are there before the first packet.
function(fanfare_correct_waitset)
  set(original "${CMAKE_SOURCE_DIR}/src/core/ddsi/src/ddsi_sockwaitset.c")
  file(READ "${original}" text)
  set(late "  if (epoll_ctl (ws->epfd, EPOLL_CTL_ADD, fd, &ev) == -1)
    return -1;
  ws->entries[fidx].conn = conn;
  ws->entries[fidx].fd = fd;
  ws->entries[fidx].index = n;
")
  set(early "  ws->entries[fidx].conn = conn;
  ws->entries[fidx].fd = fd;
  ws->entries[fidx].index = n;
  if (epoll_ctl (ws->epfd, EPOLL_CTL_ADD, fd, &ev) == -1)
  {
    ws->entries[fidx].fd = -1;
    return -1;
  }
")
  set(small "#define WAITSET_DELTA 8\n")
  set(large "#define WAITSET_DELTA 4096\n")
  foreach(part late small)
    string(FIND "${text}" "${${part}}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "ddsi_sockwaitset.c has changed: look whether it still needs correcting")
    endif()
  endforeach()
  string(REPLACE "${late}" "${early}" text "${text}")
  string(REPLACE "${small}" "${large}" text "${text}")
  set(copy "${CMAKE_BINARY_DIR}/ddsi_sockwaitset.c")
  file(WRITE "${copy}" "${text}")
  # Its private headers are found from the directory of the original.
  set_source_files_properties(
    "${copy}" TARGET_DIRECTORY ddsc
    PROPERTIES INCLUDE_DIRECTORIES "${CMAKE_SOURCE_DIR}/src/core/ddsi/src")
  get_target_property(sources ddsc SOURCES)
  list(TRANSFORM sources REPLACE ".*/ddsi_sockwaitset\\.c$" "${copy}")
  set_target_properties(ddsc PROPERTIES SOURCES "${sources}")
endfunction()

cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL fanfare_correct_waitset)

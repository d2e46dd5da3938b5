# Corrects sources of Cyclone DDS 11.0.1, in copies inside the build directory. Most of it concerns
# TCP, where any peer that reaches the port makes connections; with UDP the sockets are there before
# the first packet.

# Reads a source into `source`.
macro(fanfare_read file)
  set(name "${file}")
  file(READ "${CMAKE_SOURCE_DIR}/src/core/ddsi/src/${name}" source)
endmacro()

# Replaces a text of `source`, which must be there.
function(fanfare_replace before after)
  string(FIND "${source}" "${before}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR
      "${name} has changed: look whether it still needs correcting. Not found:\n${before}")
  endif()
  string(REPLACE "${before}" "${after}" source "${source}")
  set(source "${source}" PARENT_SCOPE)
endfunction()

# Compiles `source` in place of the original.
function(fanfare_compile)
  set(copy "${CMAKE_BINARY_DIR}/${name}")
  file(WRITE "${copy}" "${source}")
  # Its private headers are found from the directory of the original.
  set_source_files_properties(
    "${copy}" TARGET_DIRECTORY ddsc
    PROPERTIES INCLUDE_DIRECTORIES "${CMAKE_SOURCE_DIR}/src/core/ddsi/src")
  get_target_property(sources ddsc SOURCES)
  string(REPLACE "." "\\." pattern "${name}")
  list(TRANSFORM sources REPLACE ".*/${pattern}$" "${copy}")
  list(FIND sources "${copy}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${name} is not part of ddsc any more")
  endif()
  set_target_properties(ddsc PROPERTIES SOURCES "${sources}")
endfunction()

# - An entry is given to epoll before its fields are set. A connection that brings data at once is
#   then read half-initialised, and the process aborts.
# - The array of entries moves when it grows, and epoll keeps the old pointers. So it has its final
#   size from the beginning, and is full then.
function(fanfare_correct_waitset)
  fanfare_read("ddsi_sockwaitset.c")
  fanfare_replace(
[=[
  if (epoll_ctl (ws->epfd, EPOLL_CTL_ADD, fd, &ev) == -1)
    return -1;
  ws->entries[fidx].conn = conn;
  ws->entries[fidx].fd = fd;
  ws->entries[fidx].index = n;
]=]
[=[
  ws->entries[fidx].conn = conn;
  ws->entries[fidx].fd = fd;
  ws->entries[fidx].index = n;
  if (epoll_ctl (ws->epfd, EPOLL_CTL_ADD, fd, &ev) == -1)
  {
    ws->entries[fidx].fd = -1;
    return -1;
  }
]=])
  fanfare_replace(
[=[
  {
    const uint32_t newsz = ddsrt_atomic_add32_nv (&ws->sz, WAITSET_DELTA);
    ws->entries = ddsrt_realloc (ws->entries, newsz * sizeof (*ws->entries));
    for (idx = sz; idx < newsz; idx++)
      ws->entries[idx].fd = -1;
    fidx = sz;
  }
  ev.events = EPOLLIN;
  ev.data.ptr = &ws->entries[fidx];
]=]
[=[
    return -1;
  ev.events = EPOLLIN;
  ev.data.ptr = &ws->entries[fidx];
]=])
  fanfare_replace("#define WAITSET_DELTA 8\n" "#define WAITSET_DELTA 4096\n")
  fanfare_compile()
endfunction()

# - A connection that cannot be accepted, as without a free descriptor, ends the process.
# - A descriptor from FD_SETSIZE on is written behind the set that `select` takes.
# - A connection of our own that has no place in the waitset stays open, and is never read.
function(fanfare_correct_tcp)
  fanfare_read("ddsi_tcp.c")
  fanfare_replace(
[=[
    GVLOG ((rc == DDS_RETCODE_OK) ? DDS_LC_ERROR : DDS_LC_FATAL, "tcp accept failed]=]
[=[
    dds_sleepfor (DDS_MSECS (10));
    GVWARNING ("tcp accept failed]=])
  fanfare_replace(
    "#include <assert.h>\n"
    "#include <assert.h>\n#include <errno.h>\n#include <poll.h>\n")
  fanfare_replace(
[=[
  dds_return_t rc;
  fd_set fds;
  fd_set *rdset = read ? &fds : NULL;
  fd_set *wrset = read ? NULL : &fds;
  int64_t tval = timeout;

  FD_ZERO (&fds);
#if LWIP_SOCKET == 1
  DDSRT_WARNING_GNUC_OFF(sign-conversion)
#endif
  FD_SET (sock, &fds);
#if LWIP_SOCKET == 1
  DDSRT_WARNING_GNUC_ON(sign-conversion)
#endif
]=]
[=[
  struct pollfd one = { .fd = sock, .events = read ? POLLIN : POLLOUT };
  const int64_t ms = timeout / DDS_NSECS_IN_MSEC + 1;
  const int longest = (timeout == DDS_INFINITY) ? -1 : (ms > INT_MAX) ? INT_MAX : (int) ms;
  int rc;
]=])
  fanfare_replace(
[=[
    rc = ddsrt_select (sock + 1, rdset, wrset, NULL, tval);
  } while (rc == DDS_RETCODE_INTERRUPTED);

  if (rc < 0)
]=]
[=[
    rc = poll (&one, 1, longest);
  } while (rc == -1 && errno == EINTR);

  if (rc <= 0)
]=])
  fanfare_replace(
[=[
  ddsi_sock_waitset_add (conn->m_base.m_base.gv->recv_threads[0].arg.u.many.ws, &conn->m_base);
]=]
[=[
  if (ddsi_sock_waitset_add (conn->m_base.m_base.gv->recv_threads[0].arg.u.many.ws,
                             &conn->m_base) < 0)
  {
    ddsi_tcp_conn_set_socket (conn, DDSRT_INVALID_SOCKET);
    ret = DDS_RETCODE_OUT_OF_RESOURCES;
    goto fail_w_socket;
  }
]=])
  # Called by the threads of `fanfare_correct_receiving`. The cache holds a reference of its own, and
  # may have a newer connection of the same address by now.
  fanfare_replace(
[=[
/*
  ddsi_tcp_cache_find: Find existing connection to target, or if possible
]=]
[=[
void ddsi_tcp_refuse (struct ddsi_tran_conn * conn);
void ddsi_tcp_refuse (struct ddsi_tran_conn * conn)
{
  struct ddsi_tran_factory_tcp * const fact = (struct ddsi_tran_factory_tcp *) conn->m_factory;
  ddsi_tcp_conn_t const tcp = (ddsi_tcp_conn_t) conn;
  ddsi_tcp_node_t node;
  ddsrt_avl_dpath_t path;
  ddsrt_mutex_lock (&fact->ddsi_tcp_cache_lock_g);
  node = ddsrt_avl_lookup_dpath (&ddsi_tcp_treedef, &fact->ddsi_tcp_cache_g, tcp, &path);
  if (node && node->m_conn == tcp)
  {
    ddsrt_avl_delete_dpath (&ddsi_tcp_treedef, &fact->ddsi_tcp_cache_g, node, &path);
    ddsi_tcp_node_free (node);
  }
  ddsrt_mutex_unlock (&fact->ddsi_tcp_cache_lock_g);
  ddsi_conn_free (conn);
}

/*
  ddsi_tcp_cache_find: Find existing connection to target, or if possible
]=])
  fanfare_compile()
endfunction()

# - An accepted connection that has no place in the waitset stays open, and is never read.
# - A connection that brings other bytes than RTPS is shut down, and its descriptor stays open.
function(fanfare_correct_receiving)
  fanfare_read("ddsi_receive.c")
  fanfare_replace(
[=[
uint32_t ddsi_listen_thread (void *vlistener)
]=]
[=[
void ddsi_tcp_refuse (struct ddsi_tran_conn * conn);

uint32_t ddsi_listen_thread (void *vlistener)
]=])
  fanfare_replace(
[=[
      ddsi_sock_waitset_add (gv->recv_threads[0].arg.u.many.ws, conn);
      ddsi_sock_waitset_trigger (gv->recv_threads[0].arg.u.many.ws);
]=]
[=[
      if (ddsi_sock_waitset_add (gv->recv_threads[0].arg.u.many.ws, conn) < 0)
        ddsi_tcp_refuse (conn);
      ddsi_sock_waitset_trigger (gv->recv_threads[0].arg.u.many.ws);
]=])
  fanfare_replace("            ddsi_conn_free (conn);\n" "            ddsi_tcp_refuse (conn);\n")
  fanfare_compile()
endfunction()

# - A writer or reader whose description of its type is not readable is discarded, and never
#   matches. Fast DDS 2 describes types in a form of its own. Without a description, the name of the
#   type decides, as the specification permits.
function(fanfare_correct_discovery)
  fanfare_read("ddsi_plist.c")
  fanfare_replace(
[=[
dd->bswap, DDS_XTypes_TypeInformation_desc.m_ops))
  {
    ret = DDS_RETCODE_BAD_PARAMETER;
    goto err_normalize;
  }
]=]
[=[
dd->bswap, DDS_XTypes_TypeInformation_desc.m_ops))
    goto err_normalize;
]=])
  fanfare_compile()
endfunction()

# Leaves out what only Cyclone's own tests link: a second copy of ddsrt, a fifth of all files.
function(fanfare_leave_out)
  set_target_properties(ddsrt-internal symbol_export_test PROPERTIES EXCLUDE_FROM_ALL ON)
endfunction()

function(fanfare_correct)
  fanfare_correct_waitset()
  fanfare_correct_tcp()
  fanfare_correct_receiving()
  fanfare_correct_discovery()
  fanfare_leave_out()
endfunction()

cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL fanfare_correct)

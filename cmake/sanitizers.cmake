# OMNIBUS_SANITIZE: "", "address" (with undefined), or "thread". The presets choose.
set(OMNIBUS_SANITIZE "" CACHE STRING "address | thread | empty")
if(OMNIBUS_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(OMNIBUS_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ warns that TSan does not see bare fences, which Asio has around handlers. It can then report a
    # race that is none, but not miss one; Asio hands work over under its own mutex as well.
    add_compile_options(-Wno-tsan)
  endif()
elseif(NOT OMNIBUS_SANITIZE STREQUAL "")
  message(FATAL_ERROR "OMNIBUS_SANITIZE is '${OMNIBUS_SANITIZE}', expected address, thread or nothing")
endif()

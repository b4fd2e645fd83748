# Fails if an object of kernels defines a weak symbol: an inline function or template with external linkage. The linker keeps
# one of all copies, and if that is the one compiled for AVX-512, plain code crashes on a processor without it.
#
# Usage: cmake -DNM=nm "-DOBJECTS=a.o|b.o" -P tools/check_kernel_objects.cmake
string(REPLACE "|" ";" objects "${OBJECTS}")
set(found "")
foreach(object ${objects})
  execute_process(COMMAND "${NM}" -C --defined-only "${object}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[0-9a-f]+ [WVu] [^\n]*" weak "${symbols}")
  foreach(symbol ${weak})
    string(APPEND found "\n  ${object}: ${symbol}")
  endforeach()
endforeach()
if(found)
  message(FATAL_ERROR "Kernels must have internal linkage or be always inlined, but these are weak symbols:${found}")
endif()

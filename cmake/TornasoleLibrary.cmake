# libtornasole: all folders in one shared library that exports what include/tornasole marks, and nothing else.

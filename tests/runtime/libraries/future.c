/* The stand-in: a C library of a version to come, a library that is not installed, TVM's runtime.
 */
int future_function(void) { return 0; }

/* A library that has nothing to do with TVM. */
int compress(int level) { return level; }

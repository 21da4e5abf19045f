/* No functions: what remains of a model that only passes its inputs on. */
static const int kNothing __attribute__((used)) = 0;

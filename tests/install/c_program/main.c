/* A program in C that has nothing of run_model but librun_model.so. */
#include <run_model/c_api.h>
#include <stdio.h>

int main(void) { return puts(run_model_version()) < 0; }

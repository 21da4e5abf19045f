/* Calls functions of a library that it is not linked with. */
#include "packed.h"

void cblas_sgemm(void);
void cblas_sgemv(void);

PACKED(fused_dense) {
  cblas_sgemm();
  cblas_sgemv();
  return 0;
}

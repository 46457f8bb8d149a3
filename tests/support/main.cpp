#include <gtest/gtest.h>

extern "C" void openblas_set_num_threads(int);

int main(int argc, char** argv) {
  openblas_set_num_threads(1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

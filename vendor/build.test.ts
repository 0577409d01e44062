import { expect, test } from "bun:test";
import { arm64Toolchain, configureArguments, ownToolchain } from "./build.ts";

const inputs = { mlxC: "/mlx-c", mlx: "/mlx", openblas: undefined };

test("only a build for another processor names its compiler and its system to CMake", () => {
  const own = configureArguments(inputs, ownToolchain, "/build").join(" ");
  expect(own).toContain("-DMLX_C_SOURCE=/mlx-c -DMLX_DIR=/mlx/share/cmake/MLX");
  expect(own).not.toContain("_COMPILER=");
  expect(own).not.toContain("CMAKE_SYSTEM_");
  const arm64 = configureArguments({ ...inputs, openblas: "/blas" }, arm64Toolchain, "/build");
  expect(arm64).toContain("-DOPENBLAS_DIR=/blas");
  expect(arm64).toContain("-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++");
  expect(arm64).toContain("-DCMAKE_SYSTEM_PROCESSOR=aarch64");
});

#!/usr/bin/env node
// Runs the server's binary with all arguments. It is the one that LOOM_BRIDGE_SERVER names, or
// that of the optional package for this platform, or the one on the PATH.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";

const NAME = "loom-bridge-server";
const platform = `@loom-bridge/${process.platform}-${process.arch}`;

function find() {
  if (process.env.LOOM_BRIDGE_SERVER) {
    return process.env.LOOM_BRIDGE_SERVER;
  }
  try {
    return createRequire(import.meta.url).resolve(`${platform}/bin/${NAME}`);
  } catch {
    return NAME;
  }
}

const binary = find();
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  const missing = binary === NAME && error.code === "ENOENT";
  console.error(
    missing
      ? `loom-bridge: there is no ${NAME}: npm install ${platform}, put one on the PATH, or name it by LOOM_BRIDGE_SERVER`
      : `loom-bridge: ${binary} does not start: ${error.message}`,
  );
  process.exitCode = 127;
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exitCode = code;
    return;
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});

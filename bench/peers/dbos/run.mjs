// node run.mjs [--quick]
//
// Ten-step workflows per second of DBOS on PostgreSQL, with 1, 8 and 32 in flight: the work that
// bench_workflow.c measures. A line of JSON for each: {"name", "rate"} or {"name", "error"}.
//
// The PostgreSQL server is one of its own, in a temporary folder beside the benchmark's files (HD_BENCH_DIR),
// with its defaults: fsync on, synchronous_commit on. PostgreSQL refuses to run as root; then it runs as the
// user "postgres", or as the first of those who may.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, chownSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

const quick = process.argv.includes("--quick");
const quiet = { info() {}, debug() {}, warn() {}, error(e) { console.error(String(e)); } };

function stop(why) {
  console.log(JSON.stringify({ name: "dbos", error: why }));
  process.exit(0);
}

// Where Debian keeps what belongs to a version.
function findTool(name) {
  const found = spawnSync("sh", ["-c", `command -v ${name}`]).stdout.toString().trim();
  if (found) return found;
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root).sort().reverse() : [];
  return versions.map((v) => join(root, v, "bin", name)).find(existsSync);
}

function userFor() {
  if (process.getuid() !== 0) return {};
  for (const name of ["postgres", "nobody"]) {
    const line = spawnSync("getent", ["passwd", name]).stdout.toString().split(":");
    if (line.length > 3) return { uid: Number(line[2]), gid: Number(line[3]) };
  }
  return stop("PostgreSQL does not run as root, and there is no user postgres");
}

function startServer() {
  const initdb = findTool("initdb");
  const postgres = findTool("postgres");
  if (!initdb || !postgres) stop("PostgreSQL is not installed (initdb, postgres)");
  const who = userFor();
  const folder = mkdtempSync(join(resolve(process.env.HD_BENCH_DIR ?? "."), "heddle-bench-dbos-"));
  if (who.uid !== undefined) chownSync(folder, who.uid, who.gid);
  const data = join(folder, "data");
  const made = spawnSync(initdb, ["-D", data, "-U", "bench", "-A", "trust", "--no-sync"], { ...who, cwd: "/" });
  if (made.status !== 0) {
    rmSync(folder, { recursive: true, force: true });
    stop(`initdb: ${made.stderr}`);
  }
  const port = 40000 + (process.pid % 20000);
  const server = spawn(postgres, ["-D", data, "-p", String(port), "-k", "", "-h", "127.0.0.1"], {
    ...who, cwd: "/", stdio: "ignore",
  });
  return { port, end() {
    server.kill("SIGINT");
    return new Promise((done) => server.on("exit", () => {
      rmSync(folder, { recursive: true, force: true });
      done();
    }));
  } };
}

async function reachable(port) {
  const { default: pg } = await import("pg");
  for (let i = 0; i < 100; i++) {
    const client = new pg.Client({ host: "127.0.0.1", port, user: "bench", database: "postgres" });
    try {
      await client.connect();
      await client.end();
      return;
    } catch {
      await new Promise((next) => setTimeout(next, 100));
    }
  }
  throw new Error("the PostgreSQL server does not answer");
}

async function measure(ten, inFlight, total) {
  let started = 0;
  const lane = async () => {
    while (started++ < total) if ((await ten()) !== 1) throw new Error("a wrong result");
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: inFlight }, lane));
  return (total * 1000) / (performance.now() - began);
}

const { DBOS } = await import("@dbos-inc/dbos-sdk");
const server = startServer();
try {
  await reachable(server.port);
  DBOS.setConfig({
    name: "bench",
    systemDatabaseUrl: `postgresql://bench@127.0.0.1:${server.port}/bench`,
    logger: quiet,
    logLevel: "error",
    runAdminServer: false,
  });
  const ten = DBOS.registerWorkflow(async () => {
    let last = 0;
    for (let i = 0; i < 10; i++) last = await DBOS.runStep(async () => 1, { name: `n${i}` });
    return last;
  }, { name: "ten" });
  await DBOS.launch();
  await measure(ten, 8, 40);
  for (const inFlight of [1, 8, 32]) {
    const rate = await measure(ten, inFlight, (quick ? 10 : 40) * Math.min(inFlight, 16) + 20);
    console.log(JSON.stringify({ name: `ten-steps-${inFlight}-in-flight`, rate }));
  }
  await DBOS.shutdown();
} catch (error) {
  console.log(JSON.stringify({ name: "dbos", error: String(error.message ?? error) }));
} finally {
  await server.end();
}
process.exit(0);

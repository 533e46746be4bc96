// The test kit from Node: one `barnabas serve --control` for the process of the tests, a cluster for each test.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Start the broker; it ends with this process, since it holds the other end of its standard input. */
export async function start(command = process.env.BARNABAS ?? "barnabas") {
  const folder = await mkdtemp(join(tmpdir(), "barnabas-"));
  const file = join(folder, "control.json");
  const child = spawn(
    command,
    ["serve", "--listen", "127.0.0.1:0", "--control", "--control-file", file, "--end-with-stdin"],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  await new Promise((resolve, reject) => {
    child.stdout.on("data", (text) => String(text).includes("started on") && resolve());
    child.once("exit", (code) => reject(new Error(`barnabas ended with ${code}`)));
    child.once("error", reject);
  });
  const { control, token } = JSON.parse(await readFile(file, "utf8"));

  async function call(method, path, body = {}) {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const request = method === "DELETE" ? { method, headers } : { method, headers, body: JSON.stringify(body) };
    const response = await fetch(control + path, request);
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  }

  return {
    /** A cluster for one test. */
    async open(config = {}) {
      const { id, bootstrap } = await call("POST", "/v1/clusters", { config });
      const perform = (name, values) => call("POST", `/v1/clusters/${id}/${name}`, values);
      return {
        bootstrap,
        perform,
        /** Wait until the topic has so many records; they are decoded as JSON. */
        async waitFor(topic, count) {
          const found = await perform("wait_for_records", { topic, count });
          if (!found.enough) throw new Error(`${topic} has ${found.records.length} records, not ${count}`);
          return found.records.map((record) => JSON.parse(Buffer.from(record.value, "base64")));
        },
        close: () => call("DELETE", `/v1/clusters/${id}`),
      };
    },
    async stop() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.stdin.end();
      await ended;
      await rm(folder, { recursive: true });
    },
  };
}

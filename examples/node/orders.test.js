import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { start } from "./barnabas.js";

let broker;
before(async () => { broker = await start(); });
after(() => broker.stop());

async function placeOrder(bootstrap, id) { // your code
  const producer = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING }).producer();
  await producer.connect();
  await producer.send({ topic: "orders", messages: [{ key: String(id), value: JSON.stringify({ id }) }] });
  await producer.disconnect();
}

test("an order is written", async () => {
  const kafka = await broker.open();
  await placeOrder(kafka.bootstrap, 7);
  assert.deepEqual(await kafka.waitFor("orders", 1), [{ id: 7 }]);
  await kafka.close();
});

test("another test has none of it", async () => {
  const kafka = await broker.open();
  assert.deepEqual((await kafka.perform("records", { topic: "orders" })).records, []);
  await kafka.close();
});

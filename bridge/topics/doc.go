// Package topics is what the bridge itself does with topics, for both protocols:
// which of them mean something, who may emit on them and who may read them.
//
// A [Rules] is asked about every event before the bus takes it. An event on
// `execute` or `node.*` (but not `node.message`) is a task: it is added to the
// tasks of its agent, with the topic as its action and the payload as the rest.
// An event on `node.message` is a direct message: it is kept in the box of its target,
// which hears of it on its own topic, [Messages]; nobody else does. A [Sender] sends one
// without an event. What loom.v1 publishes there passes as it is. [Status], [Folded] and
// the topics of messages are the bridge's own, which [Notices] emits on, and `agent.spawn`
// and `agent.result` take nothing of the native API.
//
// What begins with `agent.<id>.` is the inbox of that agent: anybody emits there,
// and only it reads, see [ReadableBy].
package topics

// Package stream serves the open stream of one agent, without the transport and for
// every protocol.
//
// A [Stream] joins what belongs to it: the agent's link in the directory, its
// subscription, the events that it has published and the answers that it is owed. A
// [Face] is the protocol: it converts a message of the agent into calls of the stream's
// methods, and what the stream hands it into messages.
//
// Events go to the bus in the order of publication; events that came while the bus was busy
// go together. Answers come in the order of their requests, and before calls and events.
// All queues are bounded; when one is full, the agent's messages are not read.
//
// A [Progress] marks what the stream was sent, so that the agent's next stream can be
// sent the rest.
package stream

// Package stream serves the open stream of one agent, without the transport and for
// every protocol.
//
// A [Stream] joins what belongs to it: the agent's link in the directory, its
// subscription, the events that it has published and the answers that it is owed. A
// [Face] is the protocol: it converts a message of the agent into calls of the stream's
// methods, and what the stream hands it into messages.
//
// Events go to the bus in the order in which they were published, those that came
// while the bus was busy together. Answers come in the order of what they answer, and
// before calls and events. Everything that waits is bounded; where there is no room
// the agent's messages are not read on.
//
// A [Progress] marks what the stream was sent, so that the agent's next stream can be
// sent the rest.
package stream

// Package a2a serves the Agent2Agent protocol, version 1.0, over gRPC: agents of other makers
// call the agents that are attached here. It holds no rule about tasks: package bridge/a2a has
// them, this one converts requests into events, and events into tasks, messages and artifacts.
//
//   - The agent of a call is its field `tenant`, which clients take from the agent's card. Without
//     one it is the only agent that serves tasks.
//   - An agent serves tasks while it listens to their topics. Its card is made of what it said of
//     itself when it attached.
//   - The giver of a task is the agent that a caller names in the metadata `loom-agent-id`, or else
//     the first that its credential names. Who may act for the giver or for the agent sees a task;
//     for others there is none.
//
// Errors of the protocol have its domain and reasons, all others those of loombridge.v1. Push
// notifications are refused as not supported.
package a2a

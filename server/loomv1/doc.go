// Package loomv1 serves loom.v1, the API that agents written with loom-py
// speak, over the same domain objects as the native one. It holds no rule about
// events, agents, tools or memory: it converts messages into calls of the domain,
// and answers and errors into the statuses and texts that those agents know.
//
// The nouns:
//
//   - [Deps] are the domain objects, and [Options] what can be adjusted.
//   - [Register] puts the services Bridge, MemoryService, ToolService, EventBus
//     and AgentRuntime on a gRPC server. Plugin is declared and not served.
//
// What differs from the native API, and stays so because agents rely on it:
//
//   - A tool call is answered with the gRPC status OK whatever happened; its
//     status, code and text are in the result. It is not recorded as a step.
//   - An agent is who it says it is, within the caller's tenant: loom-py has no
//     credentials.
//   - No stream of an agent is ended with OK unless the agent ended it: after OK
//     loom-py does not connect again.
//
// Caveats: clients refuse messages of more than 4 MiB, and an agent that gets one
// loses its stream, again and again. So nothing larger than Options.MaxSendBytes is sent;
// instead the refusal names the size and the limit.
package loomv1

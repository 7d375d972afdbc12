// Package mcp makes the tools of servers of the Model Context Protocol callable as the
// bridge's own.
//
// [Parse] reads which servers there are. [Clients] connects to all of them side by side,
// in the background, again and again, and is a [tools.Supplier]: a tool appears as
// `server:tool` as soon as its server is ready, and is gone as soon as its server is. The
// catalogue, approval, the log and the audit treat it like any other. It is of level 2:
// prompts do not list it, so that it costs them nothing until it is asked for by name.
//
// A server that is a program runs in the sandbox, in one box for as long as it lives,
// under a profile of its own; one on a network is asked through the egress gate, which
// lets it reach its own host alone. What a server says is data: names, descriptions,
// schemas and results have limits, and schemas are neither compiled nor followed.
//
// Caveats: resources, prompts, sampling and elicitation of servers are not used. Bytes in
// results are replaced by a few words.
package mcp

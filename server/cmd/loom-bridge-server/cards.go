package main

import (
	"net"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	a2av1 "github.com/loom-bridge/loom-bridge/proto/gen/lf/a2a/v1"
	"github.com/loom-bridge/loom-bridge/server/web"
)

// cardPath is where the card of the only agent that serves tasks is; behind agentPath it is that of
// the agent which is named there.
const (
	cardPath  = "/.well-known/agent-card.json"
	agentPath = "/a2a/{agent}"
)

// cards serves the cards of agents. grpcAddress is where the server listens for gRPC: clients are
// told its port, and the name by which they asked.
func cards(within grpc.ClientConnInterface, grpcAddress string) http.Handler {
	client := a2av1.NewA2AServiceClient(within)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		card, err := client.GetExtendedAgentCard(r.Context(), &a2av1.GetExtendedAgentCardRequest{Tenant: r.PathValue("agent")})
		if err != nil {
			web.Fail(w, web.Status(r.Context(), err))
			return
		}
		card.SupportedInterfaces[0].Url = reached(grpcAddress, r.Host)
		body, err := protojson.Marshal(card)
		if err != nil {
			web.Fail(w, web.Status(r.Context(), err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "private, max-age=60")
		_, _ = w.Write(body)
	})
}

// reached is an address with the name by which the server was asked.
func reached(address, asked string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return address // a socket
	}
	name := asked
	if host, _, err := net.SplitHostPort(asked); err == nil {
		name = host
	}
	return net.JoinHostPort(strings.Trim(name, "[]"), port)
}

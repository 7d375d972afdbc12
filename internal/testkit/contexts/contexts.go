// Package contexts is one client of the services about an agent's context, for tests that
// use several of them.
package contexts

import (
	"google.golang.org/grpc"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Client calls the services of sessions, prompts, blobs and agents.
type Client struct {
	loombridgev1.SessionServiceClient
	loombridgev1.PromptServiceClient
	loombridgev1.BlobServiceClient
	loombridgev1.AgentServiceClient
}

// New returns a client over a connection.
func New(conn grpc.ClientConnInterface) Client {
	return Client{
		loombridgev1.NewSessionServiceClient(conn), loombridgev1.NewPromptServiceClient(conn),
		loombridgev1.NewBlobServiceClient(conn), loombridgev1.NewAgentServiceClient(conn),
	}
}

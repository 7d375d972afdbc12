//go:build cgo && !norocksdb

package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// reachTime bounds how long the second server may take to reach the first one.
const reachTime = 30 * time.Second

// Routed starts a PostgreSQL and two servers on it, and compares calls that touch the
// workspace, made at the server that has it, with those made at the other one, which takes
// them there.
func Routed(ctx context.Context, s Settings) error {
	server, stop, err := s.postgres(ctx, nil)
	if err != nil {
		return err
	}
	defer stop()
	var bridges []*bridge
	defer func() {
		for _, b := range bridges {
			b.stop()
		}
	}()
	for _, name := range []string{"owner", "other"} {
		b, err := s.start(ctx, name, storeIn(server.Address, "routed"), "--mesh", "embedded", "--bridge-name", name)
		if err != nil {
			return err
		}
		bridges = append(bridges, b)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "owner", "log.txt"), []byte("sail at noon\n"), 0o600); err != nil {
		return err
	}
	read := func(at *bridge) func(ctx context.Context, client, n int) error {
		return func(ctx context.Context, client, _ int) error {
			got, err := at.api(client).Tool(ctx, &loombridgev1.ToolRequest{
				AgentId: fmt.Sprint("agent-", client), SessionId: "s", Name: "fs:read_file",
				ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"log.txt"}`},
			})
			if err == nil && !got.GetSuccess() {
				err = fmt.Errorf("bench: %v", got)
			}
			return err
		}
	}
	if err := read(bridges[0])(ctx, 0, 0); err != nil { // the first call makes it the owner
		return err
	}
	for end := time.Now().Add(reachTime); ; time.Sleep(10 * time.Millisecond) {
		err := read(bridges[1])(ctx, 0, 0)
		if err == nil {
			break
		}
		if time.Now().After(end) {
			return err
		}
	}
	most := s.Clients
	for _, clients := range []int{1, most} {
		s.Clients = clients
		all := []*contestant{{name: "at its server", call: read(bridges[0])}, {name: "taken there by another", call: read(bridges[1])}}
		if err := s.measure(ctx, all); err != nil {
			return err
		}
		if err := s.show("fs:read_file in a workspace", all, 0); err != nil {
			return err
		}
	}
	return nil
}

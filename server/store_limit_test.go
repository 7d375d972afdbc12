//go:build cgo && !norocksdb

package server_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// noise is text that can't be made smaller.
func noise(bytes int) string {
	data := make([]byte, bytes*3/4)
	_, _ = rand.Read(data) // never fails
	return base64.StdEncoding.EncodeToString(data)
}

// MustStartLimited starts a server with a store on disk of at most so many bytes.
func MustStartLimited(tb testing.TB, maxBytes int64, every time.Duration) *servertest.Server {
	tb.Helper()
	db, err := rockskv.Open(filepath.Join(tb.TempDir(), "store"), &rockskv.Options{Durability: rockskv.None})
	must(tb, err)
	tb.Cleanup(func() { must(tb, db.Close()) })
	return servertest.Start(tb, &servertest.Options{Engine: db, Server: server.Options{Shares: server.NewShares(server.Limits{}, true)}, Domain: compose.Options{Disk: share.Disk{
		Tenants: func() []string { return []string{auth.DefaultTenant} }, MaxBytes: maxBytes, Every: every,
	}}})
}

// Imports of sessions are stored up to the limit of the store and no further, on a disk
// that learns late what was written.
func TestImportsKeepTheStoreLimit(t *testing.T) {
	const limit, size = 16 << 20, 4 << 20
	s := MustStartLimited(t, limit, time.Second)
	source := servertest.Start(t, nil)
	for range 5 {
		_, err := source.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{
			AgentId: "a", SessionId: "s", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: noise(size / 5)}},
		})
		must(t, err)
	}
	exported, err := source.Transfer.Export(t.Context(), &loombridgev1.ExportRequest{AgentId: "a", Sessions: true})
	must(t, err)
	var lines []string
	for {
		part, err := exported.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		lines = append(lines, part.GetLines()...)
	}
	imports := func(agent string) error {
		stream, err := s.Transfer.Import(t.Context())
		must(t, err)
		for _, line := range lines {
			if err := stream.Send(&loombridgev1.ImportRequest{AgentId: agent, Sessions: true, Lines: []string{line}}); err != nil {
				break // CloseAndRecv says why
			}
		}
		_, err = stream.CloseAndRecv()
		return err
	}
	accepted := 0
	for i := range 20 {
		if err = imports(fmt.Sprint("agent-", i)); err != nil {
			MustFail(t, err, codes.ResourceExhausted, "QUOTA_EXCEEDED")
			break
		}
		accepted++
	}
	if err == nil || float64(accepted)*size > 1.25*limit || accepted < 2 {
		t.Fatalf("%d imports of %d bytes were accepted over a limit of %d: %v", accepted, size, limit, err)
	}
}

// What is deleted from a full store makes room, on a disk that learns late what was written
// and what was deleted.
func TestFullStoreIsFreed(t *testing.T) {
	s := MustStartLimited(t, 4<<20, 50*time.Millisecond)
	save := func() (string, error) {
		r, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: noise(100 << 10)})
		return r.GetId(), err
	}
	var ids []string
	var err error
	for err == nil && len(ids) < 200 {
		var id string
		if id, err = save(); err == nil {
			ids = append(ids, id)
		}
	}
	MustFail(t, err, codes.ResourceExhausted, "QUOTA_EXCEEDED")
	for _, id := range ids {
		_, err := s.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: "a", Name: &loombridgev1.DeleteRecordsRequest_Id{Id: id}})
		must(t, err)
	}
	MustBecome(t, "there is room again", func() bool {
		_, err := save()
		return err == nil
	})
}

// Every method that may make the store grow is refused when the store is full, and no
// other.
func TestFullStoreRefusesWhatGrowsIt(t *testing.T) {
	shares := server.NewShares(server.Limits{}, true)
	shares.Disk.Measured(map[string]int64{auth.DefaultTenant: 2}, 1, true, nil)
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Shares: shares}})
	refused := map[loombridgev1.Effect]int{}
	protoregistry.GlobalFiles.RangeFilesByPackage("loombridge.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				conduct, _ := proto.GetExtension(m.Options(), loombridgev1.E_Conduct).(*loombridgev1.Conduct)
				if m.IsStreamingClient() || m.IsStreamingServer() {
					continue
				}
				request := dynamicpb.NewMessage(m.Input())
				if f := m.Input().Fields().ByName("agent_id"); f != nil {
					request.Set(f, protoreflect.ValueOfString("a"))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				err := s.Conn().Invoke(ctx, "/"+string(service.FullName())+"/"+string(m.Name()), request, dynamicpb.NewMessage(m.Output()))
				cancel()
				full := strings.Contains(status.Convert(err).Message(), "--max-store-bytes")
				if want := conduct.GetEffect() == loombridgev1.Effect_EFFECT_STORES; full != want {
					t.Errorf("%s, which is %v: %v", m.FullName(), conduct.GetEffect(), err)
				}
				if full {
					refused[conduct.GetEffect()]++
				}
			}
		}
		return true
	})
	if refused[loombridgev1.Effect_EFFECT_STORES] < 20 {
		t.Errorf("%v methods were refused", refused)
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
)

// filesWith are the files below a folder that hold a text.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // files come and go while a server runs
		}
		if content, err := os.ReadFile(path); err == nil && bytes.Contains(content, []byte(text)) {
			found = append(found, path)
		}
		return nil
	}))
	return found
}

// Secrets of servers that were added lie nowhere in plain: not in the store, its log or its
// backups. A server reads them after a restart, and a restored backup says whose are to be given
// again. Those that an older server stored in plain are sealed, and its bytes go.
//
// Y47
func TestMCPSecretsAtRest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	must(t, os.Mkdir(work, 0o755))
	store, copies := filepath.Join(dir, "store"), filepath.Join(dir, "copies")
	const canary = "canary-4f2a9c"
	serve := func(store string) *process {
		return MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", store, "--workspace", work, "--backup-dir", copies, "--backup-interval", "0")
	}
	p := serve(store)
	add := func(name string) {
		t.Helper()
		_, err := p.toolService().ConnectMcpServer(t.Context(), &loombridgev1.ConnectMcpServerRequest{Definition: definition(name, guest(t, work, "good", map[string]string{"KEY": canary}))})
		must(t, err)
		p.ready(t.Context(), t, name)
	}
	add("one")
	if found := filesWith(t, store, canary); len(found) > 0 {
		t.Errorf("while it serves: %v", found)
	}
	_, err := p.backUp(t, true)
	must(t, err)
	must(t, p.Stop())
	for _, place := range []string{store, copies} {
		if found := append(filesWith(t, place, canary), filesWith(t, place, "/guest")...); len(found) > 0 {
			t.Errorf("behind it: %v", found)
		}
	}
	if found := filesWith(t, copies, "mcp-servers"); len(found) == 0 {
		t.Error("the backup has no server")
	}

	// A store of an older server.
	engine, err := rockskv.Open(store, nil)
	must(t, err)
	writer := kv.NewWriter(engine, nil)
	for pair, err := range engine.Scan(t.Context(), kv.System, kv.Range{}) {
		must(t, err)
		scope, rest, err := kv.SplitKey(pair.Key)
		must(t, err)
		if !strings.HasPrefix(scope.Owner, "mcp-servers") || rest[0] != 's' {
			continue
		}
		plain, err := json.Marshal(object{"name": "one", "command": filepath.Join(work, "guest"), "env": object{asMCPServer: "good", "KEY": canary}})
		must(t, err)
		must(t, writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{{Keyspace: kv.System, Scope: scope}}, Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.System, pair.Key, plain)
			return nil
		}}))
	}
	must(t, writer.Close())
	must(t, engine.Close())
	if len(filesWith(t, store, canary)) == 0 {
		t.Fatal("nothing was planted")
	}
	p = serve(store)
	p.ready(t.Context(), t, "one")
	eventually(t, waitTime, func() error {
		if found := filesWith(t, store, canary); len(found) > 0 {
			return fmt.Errorf("still there: %v", found)
		}
		return nil
	})
	must(t, p.Stop())

	// A backup has not the key.
	restored := filepath.Join(dir, "restored")
	said, err := loomCommand(t, "backup", "restore", "--backup-dir", copies, "--data-dir", restored)
	if err != nil {
		t.Fatal(err, said)
	}
	p = serve(restored)
	list, err := p.toolService().ListMcpServers(t.Context(), &loombridgev1.ListMcpServersRequest{})
	must(t, err)
	if len(list.GetServers()) != 1 || list.GetServers()[0].GetDefinition().GetName() != "one" {
		t.Fatalf("%v", list)
	}
	eventually(t, waitTime, func() error {
		list, err := p.toolService().ListMcpServers(t.Context(), &loombridgev1.ListMcpServersRequest{})
		must(t, err)
		if s := list.GetServers()[0]; !strings.Contains(s.GetProblem(), "Add it again with its secrets") {
			return fmt.Errorf("%v", s)
		}
		return nil
	})
	add("one")
	if answer := p.use(t, "one:look", `{}`); !answer.GetSuccess() {
		t.Error(answer.GetErrorMessage())
	}
}

// On PostgreSQL they are sealed as well, under a key that lies with the server.
//
// Y47
func TestMCPSecretsOnPostgres(t *testing.T) {
	t.Parallel()
	postgres, dir := mustStartPostgres(t), t.TempDir()
	place, work := postgresPlace(t, postgres.Address), filepath.Join(dir, "work")
	must(t, os.Mkdir(work, 0o755))
	const canary = "canary-9c31e7"
	serve := func() *process {
		return MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--store", place, "--data-dir", filepath.Join(dir, "data"), "--workspace", work)
	}
	p := serve()
	_, err := p.toolService().ConnectMcpServer(t.Context(), &loombridgev1.ConnectMcpServerRequest{Definition: definition("one", guest(t, work, "good", map[string]string{"KEY": canary}))})
	must(t, err)
	p.ready(t.Context(), t, "one")
	must(t, p.Stop())
	stored := 0
	store, err := stores.Parse(place)
	must(t, err)
	engine, err := store.Open(t.Context(), stores.Options{Durability: "sync"})
	must(t, err)
	for _, ks := range kv.Keyspaces() {
		for pair, err := range engine.Scan(t.Context(), ks, kv.Range{}) {
			must(t, err)
			if bytes.Contains(pair.Key, []byte("mcp-servers")) {
				stored++
			}
			if bytes.Contains(pair.Value, []byte(canary)) {
				t.Errorf("%s %q has it in plain", ks, pair.Key)
			}
		}
	}
	must(t, engine.Close())
	if stored == 0 {
		t.Error("nothing of the server is stored")
	}
	if found := filesWith(t, filepath.Join(dir, "data"), canary); len(found) > 0 {
		t.Errorf("in plain: %v", found)
	}
	p = serve()
	p.ready(t.Context(), t, "one")
}

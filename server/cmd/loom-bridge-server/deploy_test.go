package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var deployed = regexp.MustCompile(`(?:name: )?(LOOM_BRIDGE_[A-Z_]+)(?:, value)?: "?([^"}\n]+)"?`)

// Servers start with the settings that the files for deployment give them, and on one store.
//
// Z23
func TestDeploy(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"compose.yaml", "kubernetes.yaml"} {
		text, err := os.ReadFile(filepath.Join("deploy", name))
		must(t, err)
		store := postgresPlace(t, mustStartPostgres(t).Address)
		settings := make(map[string]string)
		for _, found := range deployed.FindAllStringSubmatch(string(text), -1) {
			settings[found[1]] = found[2]
		}
		if len(settings) != 8 {
			t.Fatalf("%s: %v", name, settings)
		}
		// What belongs to the place is that of the test.
		for variable, value := range map[string]string{"ADDR": "127.0.0.1:0", "METRICS_ADDR": "127.0.0.1:0", "MESH_LISTEN": "127.0.0.1:0", "STORE": store} {
			settings["LOOM_BRIDGE_"+variable] = value
		}
		var servers []*process
		for _, bridge := range []string{"bridge-1", "bridge-2"} {
			settings["LOOM_BRIDGE_BRIDGE_NAME"], settings["LOOM_BRIDGE_BRIDGE_ADDR"] = bridge, bridge+":50051"
			var variables []string
			for variable, value := range settings {
				variables = append(variables, variable+"="+value)
			}
			dir := t.TempDir()
			servers = append(servers, MustRunIn(t, processEnvironment(variables, dir), "--workspace", dir, "--data-dir", filepath.Join(dir, "store")))
		}
		save(t, servers[0], "tides follow the moon")
		if n := hits(t, servers[1], "moon"); n != 1 {
			t.Errorf("%s: %d hits at the other server", name, n)
		}
		for _, p := range servers {
			must(t, p.Stop())
			if strings.Contains(p.Log.String(), pgSecret) {
				t.Errorf("%s: the password is in the log", name)
			}
		}
	}
}

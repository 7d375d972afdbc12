package main

import (
	"net"
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
		if len(settings) != 9 {
			t.Fatalf("%s: %v", name, settings)
		}
		// Everything is as it is written but for the store and the ports, since several tests
		// share this machine: what is served to other machines stays so.
		for _, variable := range []string{"LOOM_BRIDGE_ADDR", "LOOM_BRIDGE_METRICS_ADDR", "LOOM_BRIDGE_MESH_LISTEN"} {
			host, _, err := net.SplitHostPort(settings[variable])
			must(t, err)
			settings[variable] = net.JoinHostPort(host, "0")
		}
		settings["LOOM_BRIDGE_STORE"] = store
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

// Package check holds the files for deployment against the schemas of what reads them.
package check

import (
	"bytes"
	"os"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checkEnvoy decodes a configuration of Envoy strictly, with all that it names by type.
func checkEnvoy(t *testing.T, name string, text []byte) *bootstrap.Bootstrap {
	t.Helper()
	config := new(bootstrap.Bootstrap)
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err == nil {
		err = protojson.Unmarshal(asJSON, config)
	}
	if err == nil {
		err = config.ValidateAll()
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return config
}

func TestEnvoy(t *testing.T) {
	config := checkEnvoy(t, "envoy.yaml", read(t, "envoy.yaml"))
	if n := len(config.GetStaticResources().GetClusters()[0].GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()); n != 3 {
		t.Errorf("%d servers", n)
	}
}

// workspace is where the image has the workspace of agents.
const workspace = "/var/lib/loom"

func TestCompose(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"../compose.yaml"}, cli.WithEnv([]string{"LOOM_PASSWORD=secret"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, s := range project.Services {
		if name := s.Environment["LOOM_BRIDGE_BRIDGE_NAME"]; name != nil {
			names[*name] = true
			if *name != s.Name || *s.Environment["LOOM_BRIDGE_BRIDGE_ADDR"] != s.Name+":50051" {
				t.Errorf("%s is called %s", s.Name, *name)
			}
			if len(s.Volumes) != 1 || s.Volumes[0].Source != s.Name || s.Volumes[0].Target != workspace {
				t.Errorf("%s keeps no workspace: %+v", s.Name, s.Volumes)
			}
		}
	}
	if len(names) != 3 || len(project.Services) != 5 {
		t.Errorf("servers: %v", names)
	}
}

func TestKubernetes(t *testing.T) {
	kinds := map[string]func() any{
		"Service": func() any { return new(core.Service) }, "ConfigMap": func() any { return new(core.ConfigMap) },
		"StatefulSet": func() any { return new(apps.StatefulSet) }, "Deployment": func() any { return new(apps.Deployment) },
		"NetworkPolicy":       func() any { return new(network.NetworkPolicy) },
		"PodDisruptionBudget": func() any { return new(policy.PodDisruptionBudget) },
	}
	seen := make(map[string]any)
	for _, part := range bytes.Split(read(t, "kubernetes.yaml"), []byte("\n---\n")) {
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal(part, &head); err != nil {
			t.Fatal(err)
		}
		if kinds[head.Kind] == nil {
			t.Errorf("kind %q", head.Kind)
			continue
		}
		object := kinds[head.Kind]()
		if err := yaml.UnmarshalStrict(part, object); err != nil {
			t.Errorf("%s %s: %v", head.Kind, head.Metadata.Name, err)
		}
		seen[head.Kind+" "+head.Metadata.Name] = object
	}
	bridge := seen["StatefulSet loom-bridge"].(*apps.StatefulSet)
	container := bridge.Spec.Template.Spec.Containers[0]
	if *bridge.Spec.Replicas != 3 || container.ReadinessProbe == nil || container.ReadinessProbe.GRPC == nil || container.ReadinessProbe.GRPC.Port != 50051 {
		t.Errorf("%+v", bridge.Spec)
	}
	claims, mounts := bridge.Spec.VolumeClaimTemplates, container.VolumeMounts
	if len(claims) != 1 || len(mounts) != 1 || mounts[0].Name != claims[0].Name || mounts[0].MountPath != workspace {
		t.Errorf("no workspace is kept: %+v, %+v", claims, mounts)
	}
	for _, name := range []string{"loom-bridge", "loom-balancer"} {
		guard, ok := seen["NetworkPolicy "+name].(*network.NetworkPolicy)
		if !ok || guard.Spec.PodSelector.MatchLabels["app"] != name || len(guard.Spec.Ingress) == 0 {
			t.Errorf("nothing says who reaches %s, which takes no credentials", name)
		}
	}
	// What is sent to a service reaches pods by their labels.
	for _, name := range []string{"loom-postgres", "loom-bridges", "loom-bridge"} {
		selected := seen["Service "+name].(*core.Service).Spec.Selector["app"]
		if seen["StatefulSet "+selected] == nil && seen["Deployment "+selected] == nil {
			t.Errorf("service %s selects %q, which is nothing", name, selected)
		}
	}
	checkEnvoy(t, "kubernetes.yaml", []byte(seen["ConfigMap loom-balancer"].(*core.ConfigMap).Data["envoy.yaml"]))
}

package main

import (
	"fmt"
	"strings"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// sandboxEffects are those of the sandbox. The store lies outside of the workspace, as
// one of the tiers wants it.
func sandboxEffects() []effect {
	return []effect{
		{
			setting: "sandbox", args: []string{"--sandbox", "off"},
			see: func(s *stand) func() string {
				return once(fmt.Sprint("unconfined: ", s.sandbox().GetTier() == "none"))
			},
			with: "unconfined: true", without: "unconfined: false",
		},
		{
			setting: "sandbox-tier", args: []string{"--sandbox-tier", "landlock"},
			see: func(s *stand) func() string {
				got := s.sandbox()
				return once(fmt.Sprint("namespaces tried: ", got.GetTier() == "namespaces" || strings.Contains(fmt.Sprint(got.GetProblems()), "tier namespaces")))
			},
			with: "namespaces tried: false", without: "namespaces tried: true",
		},
		{
			setting: "sandbox-read", args: []string{"--sandbox-read", "/etc/apt"}, both: []string{"--workspace", "$DIR/work"},
			files: map[string]string{"work/f": ""},
			see: func(s *stand) func() string {
				return once(fmt.Sprint("seen: ", strings.Contains(s.tool("system:shell", `{"command":"ls","args":["/etc/apt"]}`), "sources.list.d")))
			},
			with: "seen: true", without: "seen: false",
		},
		{
			setting: "sandbox-allow-off", args: []string{"--sandbox-allow-off"}, both: []string{"--workspace", "$DIR/work", "--config", "$DIR/loom.toml"},
			files: map[string]string{"work/f": "", "loom.toml": "[profile.work]\nmode = \"off\"\n"},
			see: func(s *stand) func() string {
				return once(fmt.Sprint("seen: ", strings.Contains(s.tool("system:shell", `{"command":"ls","args":["/etc/apt"]}`), "sources.list.d")))
			},
			with: "seen: true", without: notStarted,
		},
		{
			setting: "shell-allow", args: []string{"--shell-allow", "cat,echo"}, both: []string{"--workspace", "$DIR/work"},
			files: map[string]string{"work/f": ""},
			see: func(s *stand) func() string {
				return once(s.tool("system:shell", `{"command":"true"}`))
			},
			with: "TOOL_ERROR_CODE_PERMISSION_DENIED", without: `{"exit_code":0,"stderr":"","stdout":""}`,
		},
	}
}

func (s *stand) sandbox() *loombridgev1.SandboxStatus {
	s.tb.Helper()
	got, err := loombridgev1.NewAdminServiceClient(s.conn).GetStatus(s.ctx, &loombridgev1.GetStatusRequest{})
	must(s.tb, err)
	return got.GetSandbox()
}

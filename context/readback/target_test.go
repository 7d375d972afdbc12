package readback

import "testing"

// A name that leads to something has one written form, which leads to the same.
func FuzzParseTarget(f *testing.F) {
	for _, name := range []string{
		"step_001", "step_001.txt", "history/step_012.media3", "workspace/history/step_1000.compact", "message_017",
		"workspace/history/message_017.json", "task/t1", "history/../step_001", "step_1", "workspace/outputs/read_002.txt", "task/", "",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		first, ok := parseTarget(name)
		if !ok {
			return
		}
		again, ok := parseTarget(first.path())
		if !ok || again != first {
			t.Errorf("%q leads to %+v, and its path %q to %+v", name, first, first.path(), again)
		}
	})
}

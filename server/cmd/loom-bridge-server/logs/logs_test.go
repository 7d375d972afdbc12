package logs

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A reader that reads nothing costs lines, never time.
func TestWriterNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		w := NewWriter(writer, nil)
		const lines = waitingLines + 100
		for range lines {
			if n, err := w.Write([]byte("line\n")); n != 5 || err != nil {
				t.Fatalf("wrote %d, %v", n, err)
			}
		}
		synctest.Wait()
		text := make(chan string)
		go func() {
			all, _ := io.ReadAll(reader)
			text <- string(all)
		}()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_ = writer.Close()
		all := <-text
		kept := strings.Count(all, "line\n")
		if kept < waitingLines || kept >= lines || !strings.Contains(all, "log lines were dropped") {
			t.Errorf("%d lines kept, dropped told: %v", kept, strings.Contains(all, "dropped"))
		}
	})
}

// Closing waits for a dead pipe only so long.
func TestWriterGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		w := NewWriter(writer, nil)
		_, _ = w.Write([]byte("never read\n"))
		started := time.Now()
		_ = w.Close()
		if took := time.Since(started); took != flushTimeout {
			t.Errorf("closing took %v", took)
		}
		_, _ = w.Write([]byte("after the end\n"))
		_ = reader.Close()
	})
}

func TestWriterCutsLines(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, nil)
	_, _ = w.Write(bytes.Repeat([]byte{'x'}, maxLineBytes+1))
	_ = w.Close()
	if got := out.Len(); got != maxLineBytes+len("…\n") {
		t.Errorf("%d bytes", got)
	}
}

func TestLoggerFormats(t *testing.T) {
	for format, want := range map[string]string{Text: "level=WARN msg=told", JSON: `"level":"WARN","msg":"told"`} {
		var out bytes.Buffer
		logger := NewLogger(&out, slog.LevelWarn, format)
		logger.Info("not told")
		logger.Warn("told")
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "not told") {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}

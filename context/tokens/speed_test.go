package tokens_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// runs are texts of one size that the tokenizer can't split, or splits badly.
func runs(size int) map[string]string {
	r := rand.New(rand.NewPCG(3, 4))
	random := func(alphabet string, word int) string {
		letters := []rune(alphabet)
		var b strings.Builder
		for n := 1; b.Len() < size; n++ {
			b.WriteRune(letters[r.IntN(len(letters))])
			if word > 0 && n%word == 0 {
				b.WriteByte(' ')
			}
		}
		return b.String()[:size]
	}
	lower := "abcdefghijklmnopqrstuvwxyz"
	return map[string]string{
		"one letter":      strings.Repeat("a", size),
		"letters":         random(lower, 0),
		"capitals":        strings.Repeat("A", size),
		"mixed case":      random(lower+strings.ToUpper(lower), 0),
		"spaces":          strings.Repeat(" ", size),
		"newlines":        strings.Repeat("\n", size),
		"line breaks":     strings.Repeat("\r\n", size/2),
		"spaces, letter":  strings.Repeat(" ", size-1) + "a",
		"one symbol":      strings.Repeat("=", size),
		"dashes":          strings.Repeat("-", size),
		"symbols":         random("!#$%&()*+-=@/", 0),
		"digits":          random("0123456789", 0),
		"han":             random("天地玄黄宇宙洪荒日月盈昃", 0),
		"one emoji":       strings.Repeat("👍", size/4),
		"emoji":           random("👍🎉🔥", 0),
		"marks":           random("\u0301\u0302!", 0),
		"invalid":         strings.Repeat("\x80", size),
		"two letters":     random("ab", 0),
		"long words":      random(lower, 2048),
		"base64":          random(lower+strings.ToUpper(lower)+"0123456789+/", 0),
		"letter by digit": strings.Repeat("a1", size/2),
	}
}

// The work for a run grows with its length, not with the square of it: per
// byte, a run that is 16 times as long must not take four times as long.
func TestLongRunsAreLinear(t *testing.T) {
	if underRace() {
		t.Skip("the race detector changes what takes how long")
	}
	const short, long = 32 << 10, 512 << 10
	for encoding, model := range models {
		c := MustCounter(t, nil)
		MustCount(t, c, model, "load")
		longRuns := runs(long)
		for name, text := range runs(short) {
			fast := cpuTime(t, func() { MustCount(t, c, model, text) })
			slow := cpuTime(t, func() { MustCount(t, c, model, longRuns[name]) })
			t.Logf("%-11s %-15s %v per MiB", encoding, name, (slow * (1 << 20) / long).Round(time.Millisecond))
			if slow > 4*fast*(long/short)+20*time.Millisecond {
				t.Errorf("%s, %s: %d bytes took %v, %d bytes %v", encoding, name, short, fast, long, slow)
			}
		}
	}
}

// maxMegabyte is how long a megabyte of one character may take. It takes a
// tenth of that where nothing else runs.
const maxMegabyte = 100 * time.Millisecond

func TestMegabyteOfOneCharacter(t *testing.T) {
	if underRace() {
		t.Skip("the race detector takes ten times as long")
	}
	c := MustCounter(t, &tokens.Options{MemoEntries: 1})
	long := runs(1 << 20)
	for _, encoding := range []tokens.Encoding{tokens.O200K, tokens.CL100K} {
		MustCount(t, c, models[encoding], "load")
		for _, name := range []string{"one letter", "spaces", "line breaks", "one emoji"} {
			took := cpuTime(t, func() { MustCount(t, c, models[encoding], long[name]) })
			t.Logf("%-11s %-11s %v", encoding, name, took)
			if took > maxMegabyte {
				t.Errorf("%s: %s took %v", encoding, name, took)
			}
		}
	}
}

// minFaster is how much faster than the library the counter must be. Where
// nothing disturbs them it is about thirty times.
const minFaster = 12

// The counter and the library count the same texts in turns.
func TestFasterThanLibrary(t *testing.T) {
	if testing.Short() || underRace() {
		t.Skip("the library is slow, and the race detector disturbs the comparison")
	}
	recorded := MustTexts(t)
	for _, encoding := range []tokens.Encoding{tokens.O200K, tokens.CL100K} {
		oracle := MustOracle(t, encoding)
		c := MustCounter(t, nil)
		MustCount(t, c, models[encoding], "load")
		var own, library time.Duration
		ownBytes, libraryBytes := 0, 0
		for from := 0; from < len(recorded); from += 500 {
			part := recorded[from:min(from+500, len(recorded))]
			own += cpuTime(t, func() {
				for _, text := range part {
					MustCount(t, c, models[encoding], text)
				}
			})
			ownBytes += total(part)
			part = part[:len(part)/8]
			library += cpuTime(t, func() {
				for _, text := range part {
					oracle(text)
				}
			})
			libraryBytes += total(part)
		}
		ownSpeed, librarySpeed := megabytes(ownBytes, own), megabytes(libraryBytes, library)
		t.Logf("%s: %.0f MB/s, the library %.1f MB/s: %.0f times", encoding, ownSpeed, librarySpeed, ownSpeed/librarySpeed)
		if ownSpeed < minFaster*librarySpeed {
			t.Errorf("%s: only %.1f times as fast", encoding, ownSpeed/librarySpeed)
		}
	}
}

func total(texts []string) (n int) {
	for _, text := range texts {
		n += len(text)
	}
	return n
}

func megabytes(bytes int, took time.Duration) float64 { return float64(bytes) / 1e6 / took.Seconds() }

// BenchmarkCount counts each text for the first time: the memo is too small to
// help.
func BenchmarkCount(b *testing.B) {
	text := strings.Repeat(texts["prose"]+texts["code"]+texts["json"], 300)
	for _, encoding := range []tokens.Encoding{tokens.O200K, tokens.CL100K} {
		b.Run(string(encoding), func(b *testing.B) {
			c := MustCounter(b, &tokens.Options{MemoEntries: 1})
			MustCount(b, c, models[encoding], "load")
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for i := 0; b.Loop(); i++ {
				MustCount(b, c, models[encoding], text[i%8:])
			}
		})
	}
}

// BenchmarkCountRecorded is the speed on the texts of recorded runs.
func BenchmarkCountRecorded(b *testing.B) {
	text := strings.Join(MustTexts(b), "\n")[:tokens.MaxTextBytes]
	for _, encoding := range []tokens.Encoding{tokens.O200K, tokens.CL100K} {
		b.Run(string(encoding), func(b *testing.B) {
			c := MustCounter(b, &tokens.Options{MemoEntries: 1})
			MustCount(b, c, models[encoding], "load")
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for i := 0; b.Loop(); i++ {
				MustCount(b, c, models[encoding], text[i%8:])
			}
		})
	}
}

// A text that was counted before must not be counted again.
func BenchmarkCountRemembered(b *testing.B) {
	c := MustCounter(b, nil)
	text := strings.Repeat(texts["prose"], 1000)
	MustCount(b, c, "gpt-4o", text)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		MustCount(b, c, "gpt-4o", text)
	}
}

// BenchmarkCountRuns is the cost of the texts that are worst to count.
func BenchmarkCountRuns(b *testing.B) {
	for name, text := range runs(1 << 20) {
		b.Run(name, func(b *testing.B) {
			c := MustCounter(b, &tokens.Options{MemoEntries: 1})
			MustCount(b, c, "gpt-4o", "load")
			b.SetBytes(int64(len(text)))
			for i := 0; b.Loop(); i++ {
				MustCount(b, c, "gpt-4o", text[i%4*4:])
			}
		})
	}
}

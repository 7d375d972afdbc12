package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// resultsPerRound are recorded in each round, before and between kills.
	resultsPerRound = 200
	// quickResults and quickBytes are for runs that nobody asked to be long: so
	// many results, none longer.
	quickResults, quickBytes = 150, 2 << 20
	// quickRounds are played at most until prompts have named results of each kind.
	quickRounds = 10
	// wholeBytes is how long a result may be that is read in full by each of its names.
	// A longer one is by the first, and in parts by the others.
	wholeBytes = 8 << 20
	// longSeldom: one of so many results may be longer than that.
	longSeldom = 8
	// longestResult is the longest that a server takes.
	longestResult = 64 << 20
)

// A21, Q08: results of every form and size come back byte for byte by every name
// that is given for them: in the answer, and in the prompts of the ledger, of
// append-only and of all presets, whatever the settings of names, references and
// offloading, which change with each start. After kill -9, with each call that was
// under way repeated. LOOM_SOAK_ROUNDS rounds record 200 each.
func TestSoakResultsComeBack(t *testing.T) {
	t.Parallel()
	binary := mustBuild(t)
	seed := chance.Seed(t)
	s := &resultsSoak{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), perRound: resultsPerRound, longest: longestResult,
		count: map[string]int{}, modes: map[string]int{}, byName: map[string]int{},
	}
	rounds := soakRoundsOr(t, 0)
	if rounds == 0 {
		rounds, s.perRound, s.longest = 1, sized(quickResults/3, quickResults), quickBytes
	}
	for round := 0; round < rounds || round < quickRounds && !s.shown(); round++ {
		s.round(binary)
		if rounds > 1 {
			t.Logf("%d results, %d names, %d kills: %d differ", s.results, s.names, s.kills, s.wrong)
		}
	}
	t.Logf("%d results of %d MiB, %v, %v, read back %d times, %d of them by fs:read_file, after %d kills: %d differ",
		s.results, s.bytes>>20, s.count, s.modes, s.names, s.files, s.kills, s.wrong)
	t.Logf("%d prompts under %d settings gave %v names; %d were over every budget", s.prompts, s.starts, s.byName, s.overfull)
	if !s.shown() {
		t.Error("no prompt named anything, so nothing was shown of prompts")
	}
}

// shown reports whether prompts gave names of each kind.
func (s *resultsSoak) shown() bool {
	return min(s.byName[nameStep], s.byName[nameOutputs], s.byName[nameMessage]) > 0
}

type resultsSoak struct {
	t        *testing.T
	random   *rand.Rand
	perRound int
	longest  int
	// acknowledged are the results of this round, pending is the one that was under way
	// when the server was killed; nil for none.
	acknowledged []*acknowledged
	pending      *acknowledged
	starts       int // with settings of their own

	results, names, kills, wrong int
	files                        int // of names, how many the tool read
	prompts, overfull            int
	bytes                        int64
	count, modes, byName         map[string]int
}

// acknowledged is a recorded result: the seed that it is made of, and the names it
// was given.
type acknowledged struct {
	seed    uint64
	session string
	mode    string
	// step is its step's id, or the message's.
	step string
	// paths lead to what was taken out of the result, where that is less than all.
	paths []string
}

// round records results, killing the server now and then, and reads them back.
func (s *resultsSoak) round(binary string) {
	dir, err := os.MkdirTemp(s.t.TempDir(), "round")
	if err != nil {
		s.t.Fatal(err)
	}
	defer os.RemoveAll(dir) // many rounds take more than a disk has
	args := []string{"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "store"), "--workspace", filepath.Join(dir, "workspace"), "--log-level", "error", "--blob-max-bytes", "0"}
	if err := os.Mkdir(filepath.Join(dir, "workspace"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.acknowledged = nil
	for len(s.acknowledged) < s.perRound || s.pending != nil {
		process, addr := mustStart(s.t, binary, append(args, s.settings()...)...)
		conn := mustDial(s.t, addr)
		kill := func() { _ = process.Process.Kill() }
		if err := s.record(conn, kill); err != nil && !died(err) {
			s.t.Fatal(err)
		}
		conn.Close()
		kill()
		process.Wait() //nolint:errcheck // it was killed
		s.kills++
	}
	process, addr := mustStart(s.t, binary, append(args, s.settings()...)...)
	conn := mustDial(s.t, addr)
	s.readPrompts(conn)
	for _, a := range s.acknowledged {
		s.verify(conn, a)
	}
	conn.Close()
	_ = process.Process.Kill()
	process.Wait() //nolint:errcheck // it was killed
}

// record goes on until the round has enough, or the server has gone: it is killed
// at any time after some results.
func (s *resultsSoak) record(conn *grpc.ClientConn, kill func()) error {
	if err := s.configure(conn); err != nil {
		return err
	}
	for left := s.perRound/20 + s.random.IntN(s.perRound/4); len(s.acknowledged) < s.perRound || s.pending != nil; left-- {
		if left == 0 {
			time.AfterFunc(time.Duration(s.random.IntN(200))*time.Millisecond, kill)
		}
		if s.pending == nil {
			s.pending = s.next()
		}
		a := s.pending
		g := made(a.seed, s.longest)
		if err := s.recordAs(conn, a, &g); err != nil {
			return err
		}
		s.acknowledged, s.pending = append(s.acknowledged, a), nil
		s.results, s.bytes = s.results+1, s.bytes+int64(len(g.data))
		s.count[g.kind]++
		s.modes[a.mode]++
		if s.random.IntN(10) == 0 {
			if _, err := s.prompt(conn, &loombridgev1.AssembleRequest{SessionId: a.session, MaxTokens: 20_000}); err != nil {
				return err
			}
		}
	}
	return nil
}

// verify reads a result by each of its names.
func (s *resultsSoak) verify(conn *grpc.ClientConn, a *acknowledged) {
	client := contexts.New(conn)
	g := made(a.seed, s.longest)
	original := loombridgev1.BlobForm_BLOB_FORM_ORIGINAL
	s.same(client, g, &loombridgev1.ReadBlobRequest{Name: a.step, SessionId: a.session}, g.data)
	slices.Sort(a.paths)
	s.sameFile(conn, g, a, append(a.paths, a.step)[s.random.IntN(len(a.paths)+1)])
	for _, name := range slices.Compact(a.paths) {
		if a.mode == modeMessage {
			s.same(client, g, &loombridgev1.ReadBlobRequest{Name: name, SessionId: a.session}, g.data)
			continue
		}
		if len(g.data) > wholeBytes {
			s.sameParts(client, g, name)
			continue
		}
		want := g.data
		switch {
		case strings.HasSuffix(name, ".txt") && strings.HasPrefix(name, "step_"):
			want = g.text
		case g.taken != nil && name != a.step:
			want = g.taken
		}
		if want != nil {
			s.same(client, g, &loombridgev1.ReadBlobRequest{Name: name}, want)
		}
		if !bytes.Equal(want, g.data) {
			s.same(client, g, &loombridgev1.ReadBlobRequest{Name: name, Form: original}, g.data)
		}
	}
}

// sameParts compares a long result with what a further name leads to: its hash, and
// some parts.
func (s *resultsSoak) sameParts(client contexts.Client, g given, name string) {
	sum := sha256.Sum256(g.data)
	for range 3 {
		from := s.random.IntN(len(g.data))
		r := &loombridgev1.ReadBlobRequest{Name: name, Offset: int64(from), Limit: 64 << 10}
		if info := s.same(client, g, r, g.data[from:min(from+64<<10, len(g.data))]); info.GetRef() != hex.EncodeToString(sum[:]) || info.GetSize() != int64(len(g.data)) {
			s.wrong++
			s.t.Errorf("%s leads to %v", name, info)
		}
	}
}

// same compares what a request reads, and returns what the server says of it.
func (s *resultsSoak) same(client contexts.Client, g given, r *loombridgev1.ReadBlobRequest, want []byte) *loombridgev1.BlobInfo {
	ctx, cancel := context.WithTimeout(s.t.Context(), soakDeadline)
	defer cancel()
	s.names++
	r.AgentId = "reader"
	info, got, err := readAll(ctx, client, r, len(want))
	if err != nil || !bytes.Equal(got, want) {
		s.wrong++
		s.t.Errorf("%s of %d bytes by %s, %s as %v: %d bytes, %v: %.60q, want %.60q", g.kind, len(g.data), g.tool, r.GetName(), r.GetForm(), len(got), err, got, want)
	}
	return info
}

func readAll(ctx context.Context, client contexts.Client, r *loombridgev1.ReadBlobRequest, size int) (*loombridgev1.BlobInfo, []byte, error) {
	stream, err := client.ReadBlob(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	var info *loombridgev1.BlobInfo
	all := make([]byte, 0, size)
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return info, all, nil
		}
		if err != nil {
			return info, all, err
		}
		if info == nil {
			info = piece.GetInfo()
		}
		all = append(all, piece.GetData()...)
	}
}

// given is a result and how it is given.
type given struct {
	tool, kind string
	form       loombridgev1.ResultForm
	data       []byte
	// taken is what the paths of a shell's output and a file's content lead to,
	// where that is not the result itself.
	taken []byte
	// text is the text of the result, where it is known.
	text []byte
}

// made makes a result of a seed: always the same.
func made(seed uint64, longest int) given {
	r := &maker{rand.New(rand.NewPCG(seed, 1))}
	most := longest
	if r.IntN(longSeldom) > 0 {
		most = min(most, quickBytes)
	}
	size := int(math.Exp(r.Float64() * math.Log(float64(most))))
	g := r.result(size)
	for len(g.data) > longest { // it takes more in its form
		size = size * 2 / 3
		g = r.result(size)
	}
	if len(g.data) > 1<<20 {
		g.taken, g.text = nil, nil // a long result is kept as it is under every name
	}
	return g
}

// result makes one of about so many bytes.
func (r *maker) result(size int) given {
	tools := []string{"my:tool", "my:tool", "web:search", "browser:navigate", "fs:list_dir", "system:shell", "fs:read_file", "mcp:screenshot"}
	g := given{tool: tools[r.IntN(len(tools))], form: loombridgev1.ResultForm_RESULT_FORM_JSON}
	switch r.IntN(6) {
	case 0:
		g.kind, g.form, g.data = "bytes", loombridgev1.ResultForm_RESULT_FORM_BYTES, r.bytes(size)
	case 1:
		g.kind, g.form, g.data = "text", loombridgev1.ResultForm_RESULT_FORM_TEXT, r.text(size)
	case 2:
		r.image(&g, size)
	case 3:
		r.printed(&g, size)
	default:
		g.kind, g.data = "JSON", r.value(nil, size, 0)
		if g.tool == "system:shell" || g.tool == "fs:read_file" {
			g.tool = "my:tool" // what is taken out of these is worked out for printed alone
		}
	}
	return g
}

// maker makes results.
type maker struct{ *rand.Rand }

func (r *maker) bytes(n int) []byte {
	data := make([]byte, n)
	for i := 0; i < n; i += 8 {
		for j, word := i, r.Uint64(); j < min(i+8, n); j, word = j+1, word>>8 {
			data[j] = byte(word)
		}
	}
	// By chance they hold what the server marks places in texts with (named looks for it).
	for _, mark := range []string{"\uFDD0", "\uFDD1"} {
		data = bytes.ReplaceAll(data, []byte(mark), []byte("???"))
	}
	return data
}

// text is UTF-8, with everything that it may hold.
func (r *maker) text(n int) []byte {
	words := []string{"a line of words\n", "é", "\t", "日本語 ", "\x00", "src/app/main.py ", "\"quoted\" ", "\\n", "👍", "error: it broke\n", "\u2028", "\x7f", "12 passed "}
	if r.IntN(2) == 0 {
		words = slices.DeleteFunc(words, func(w string) bool { return w == "\x00" })
	}
	var text bytes.Buffer
	for text.Len() < n {
		text.WriteString(words[r.IntN(len(words))])
	}
	data := text.Bytes()[:n]
	return bytes.ToValidUTF8(data, []byte("?"))
}

// quoted writes a text as JSON in one of the ways there are.
func (r *maker) quoted(text string) []byte {
	switch r.IntN(3) {
	case 0:
		out, _ := json.Marshal(text) // text has a JSON form
		return out
	case 1:
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(text) // text has a JSON form
		return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	}
	out := []byte{'"'}
	for _, c := range text {
		if c < 0x20 || c == '"' || c == '\\' || c > 0x7e && c < 0x10000 {
			out = fmt.Appendf(out, `\u%04X`, c)
			continue
		}
		out = append(out, string(c)...)
	}
	return append(out, '"')
}

// space is white space that JSON may have, or none.
func (r *maker) space() []byte { return []byte([]string{"", "", " ", "\n\t", "\r\n"}[r.IntN(5)]) }

// value writes a JSON value of about n bytes.
func (r *maker) value(dst []byte, n, depth int) []byte {
	dst = append(dst, r.space()...)
	scalars := []string{
		"null", "true", "false", "3", "-0.0", "1.0", "1e5", "1E+05", "12345678901234567890123", "0.1000", `""`, `"\u0041\/"`, "[]", "{}", `{"error_code":"E42"}`,
	}
	switch {
	case n < 20 || depth > 60:
		dst = append(dst, scalars[r.IntN(len(scalars))]...)
	case r.IntN(4) == 0:
		dst = append(dst, r.quoted(string(r.text(n)))...)
	case r.IntN(2) == 0:
		dst = append(dst, '[')
		for i, parts := 0, 1+r.IntN(5); i < parts; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = r.value(dst, n/parts, depth+1)
		}
		dst = append(dst, ']')
	default:
		keys := []string{"z", "a", "a", "content", "output", "stdout", "stderr", "exit_code", "results", "entries", "text", "status", "pid", "", "é", "type", "data"}
		dst = append(dst, '{')
		for i, parts := 0, 1+r.IntN(5); i < parts; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, r.quoted(keys[r.IntN(len(keys))])...), ':')
			dst = r.value(dst, n/parts, depth+1)
		}
		dst = append(dst, '}')
	}
	return append(dst, r.space()...)
}

// printed is what a program printed, or a file's content, as JSON.
func (r *maker) printed(g *given, n int) {
	out, said := strings.ToValidUTF8(string(r.text(n)), ""), ""
	g.kind = "printed"
	if r.IntN(2) == 0 {
		said = "warning: something\n"
	}
	exit := []string{"0", "0", "1", "137"}[r.IntN(4)]
	if g.tool == "fs:read_file" {
		g.data = fmt.Appendf(nil, `{"content":%s%s}`, r.quoted(out), r.space())
		g.taken = []byte(out)
		return
	}
	g.data = fmt.Appendf(nil, `{"exit_code":%s,%s"stdout":%s,"stderr":%s}`, exit, r.space(), r.quoted(out), r.quoted(said))
	g.text = []byte(out + said)
	if g.tool == "system:shell" {
		g.taken = g.text
	}
}

// image is one of about n bytes in a form that results have.
func (r *maker) image(g *given, n int) {
	chunk := func(kind string, data []byte) []byte {
		out := []byte{byte(len(data) >> 24), byte(len(data) >> 16), byte(len(data) >> 8), byte(len(data))}
		out = append(append(out, kind...), data...)
		sum := crc32.ChecksumIEEE(out[4:])
		return append(out, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
	}
	picture := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", []byte{0, 0, 2, 128, 0, 0, 1, 224, 8, 0, 0, 0, 0})...)
	picture = append(append(picture, chunk("tEXt", r.bytes(n))...), chunk("IEND", nil)...)
	text := base64.StdEncoding.EncodeToString(picture)
	g.kind = "image"
	switch r.IntN(4) {
	case 0:
		g.form, g.data = loombridgev1.ResultForm_RESULT_FORM_BYTES, picture
	case 1:
		g.form, g.data = loombridgev1.ResultForm_RESULT_FORM_TEXT, []byte("data:image/png;base64,"+text)
	case 2:
		g.data = []byte(`{"content":[{"type":"text","text":"a screenshot"},{"type":"image","data":"` + text + `","mimeType":"image/png"}]}`)
	default:
		g.data = []byte(`{"screenshot": "data:image/png;base64,` + text + `", "n": 1.0}`)
	}
}

// record records the result in one message, or in several when it is too long.
func (g *given) record(ctx context.Context, client contexts.Client, r *loombridgev1.RecordStepRequest) (*loombridgev1.RecordStepResponse, error) {
	r.ToolName, r.Success = g.tool, true
	if len(g.data) > 1<<20 {
		return g.upload(ctx, client, r)
	}
	switch g.form {
	case loombridgev1.ResultForm_RESULT_FORM_BYTES:
		r.OutputForm = &loombridgev1.RecordStepRequest_OutputBytes{OutputBytes: &loombridgev1.ResultBytes{Data: g.data}}
	case loombridgev1.ResultForm_RESULT_FORM_TEXT:
		r.OutputForm = &loombridgev1.RecordStepRequest_OutputText{OutputText: string(g.data)}
	default:
		r.OutputForm = &loombridgev1.RecordStepRequest_OutputJson{OutputJson: string(g.data)}
	}
	return client.RecordStep(ctx, r)
}

func (g *given) upload(ctx context.Context, client contexts.Client, r *loombridgev1.RecordStepRequest) (*loombridgev1.RecordStepResponse, error) {
	r.OutputForm = &loombridgev1.RecordStepRequest_OutputUpload{OutputUpload: &loombridgev1.ResultUpload{Form: g.form}}
	stream, err := client.UploadStep(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&loombridgev1.UploadStepRequest{Item: &loombridgev1.UploadStepRequest_Step{Step: r}})
	for piece := range slices.Chunk(g.data, 512<<10) {
		if err == nil {
			err = stream.Send(&loombridgev1.UploadStepRequest{Item: &loombridgev1.UploadStepRequest_Data{Data: piece}})
		}
	}
	got, err := stream.CloseAndRecv()
	return got, err
}

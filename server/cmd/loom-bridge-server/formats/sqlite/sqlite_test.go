package sqlite

import (
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// want is the row of a number in testdata/rows.db, which SQLite itself has written.
func want(i int) [5]string {
	value := strings.Repeat(fmt.Sprintf("%d ", i), 2000)[:i*37%1500]
	n := new(big.Int).Exp(big.NewInt(int64(i)), big.NewInt(int64(i)), big.NewInt(1<<62))
	if i%2 == 1 {
		n.Neg(n)
	}
	return [5]string{fmt.Sprint("row ", i), value, n.String(), strconv.FormatFloat(float64(i)/4, 'g', -1, 64), ""}
}

func values(t *testing.T, row Row) (all [5]string) {
	t.Helper()
	for i, name := range []string{"the name", "value", "n", "r", "late"} {
		text, err := row.Text(name)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = text
	}
	return all
}

func open(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestRows: all rows come as SQLite wrote them, in order, and each by its number.
func TestRows(t *testing.T) {
	t.Parallel()
	table := open(t, filepath.Join("testdata", "rows.db")).Table("rows")
	i := 0
	for row, err := range table.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		i++
		if got := values(t, row); row.ID != int64(3*i) || got != want(i) {
			t.Fatalf("row %d is %d, %.80q", i, row.ID, got)
		}
	}
	if i != 60 {
		t.Errorf("%d rows", i)
	}
	for id := range 190 {
		row, ok, err := table.Row(int64(id))
		if err != nil || ok != (id%3 == 0 && id > 0 && id <= 180) {
			t.Fatalf("%d: %t, %v", id, ok, err)
		}
		if ok && values(t, row) != want(id/3) {
			t.Fatalf("row %d by its number is %.80q", id, values(t, row))
		}
	}
	if text, err := (&Row{table: table}).Text("none"); text != "" || err != nil {
		t.Errorf("a column that is not there: %q, %v", text, err)
	}
	if open(t, filepath.Join("testdata", "rows.db")).Table("none") != nil {
		t.Error("there is a table none")
	}
}

// TestLog: rows are as the last transaction left them that ended, which stands in the log.
func TestLog(t *testing.T) {
	t.Parallel()
	path := copied(t, "rows.db", nil)
	logged(t, path, 1<<20)
	db := open(t, path)
	table, n := db.Table("Rows"), 0
	for _, err := range table.Rows() {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	six, _, _ := table.Row(6)
	_, nine, _ := table.Row(9)
	last, _, err := table.Row(1000)
	_, open, _ := table.Row(1001)
	if err != nil || n != 60 || nine || open || values(t, six)[1] != "new" || values(t, last) != [5]string{"last", "", "0", "1.5", "now"} {
		t.Errorf("%d rows, %t, %t, %v", n, nine, open, err)
	}
	if err := db.Unchanged(); err != nil {
		t.Error(err)
	}
}

// copied copies a file of testdata, changed.
func copied(t testing.TB, name string, change func(data []byte) []byte) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		data = change(data)
	}
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// logged puts the beginning of the log beside a file.
func logged(t testing.TB, path string, size int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"-wal", data[:min(size, len(data))], 0o600); err != nil {
		t.Fatal(err)
	}
}

// readAll reads all there is, and returns how many rows that was.
func readAll(path string) (rows int, err error) {
	db, err := Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	table := db.Table("rows")
	if table == nil {
		return 0, nil
	}
	for row, err := range table.Rows() {
		if err != nil {
			return rows, err
		}
		rows++
		for _, name := range []string{"late", "value", "the name", "n", "r"} {
			if _, err := row.Text(name); err != nil {
				return rows, err
			}
		}
		if _, _, err := table.Row(row.ID); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// TestDamaged: a file that is cut off is refused, and damage anywhere ends nothing.
func TestDamaged(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "rows.db"))
	if err != nil {
		t.Fatal(err)
	}
	whole := len(data)
	for size := 0; size < whole; size += 1013 {
		_, err := readAll(copied(t, "rows.db", func(data []byte) []byte { return data[:size] }))
		if _, ok := errors.AsType[*FormatError](err); !ok {
			t.Errorf("cut at %d: %v", size, err)
		}
	}
	for at := 0; at < whole; at += 307 {
		for _, b := range []byte{0, 0xff, 5} {
			_, err := readAll(copied(t, "rows.db", func(data []byte) []byte { data[at] = b; return data }))
			if _, ok := errors.AsType[*FormatError](err); err != nil && !ok {
				t.Errorf("byte %d is %d: %v", at, b, err)
			}
		}
	}
	for _, size := range []int{0, 20, 32, 600, 1100, 100_000} {
		path := copied(t, "rows.db", nil)
		logged(t, path, size)
		if n, err := readAll(path); err != nil || n != 60 {
			t.Errorf("a log cut at %d: %d rows, %v", size, n, err)
		}
	}
}

// TestUnchanged: what a program writes meanwhile is noticed, and what it has not ended.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	path := copied(t, "rows.db", nil)
	db := open(t, path)
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := db.Unchanged(); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if err := os.WriteFile(path+"-journal", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "has not ended") {
		t.Error(err)
	}
}

// FuzzRows: no file ends the program or keeps it for long.
func FuzzRows(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "rows.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "a.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readAll(path)
		if _, ok := errors.AsType[*FormatError](err); err != nil && !ok {
			t.Error(err)
		}
	})
}

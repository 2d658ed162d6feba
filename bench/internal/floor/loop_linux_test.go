package floor

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// With every choice, the same bytes are served, to more clients than events are returned at once,
// and in pieces.
func TestChoicesEcho(t *testing.T) {
	for _, options := range []Options{
		{}, {Block: true}, {Yield: true}, {Park: true}, {Block: true, Park: true, Yield: true},
		{Map: true}, {Pool: Classes}, {Pool: OneSize}, {Loops: 1},
	} {
		t.Run(fmt.Sprintf("%+v", options), func(t *testing.T) {
			address := start(t, Echo, options)
			var clients sync.WaitGroup
			for i := range 300 {
				// Ends after its exchanges or at its deadline; waited for below.
				clients.Go(func() {
					if err := echo(address, i); err != nil {
						t.Errorf("client %d: %v", i, err)
					}
				})
			}
			clients.Wait()
			// Slots are reused.
			if err := echo(address, 0); err != nil {
				t.Error(err)
			}
		})
	}
}

func start(t *testing.T, answer Answerer, options Options) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := Serve(listener.(*net.TCPListener), answer, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server.Addr().String()
}

func dial(address string) (net.Conn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(20 * time.Second))
}

func echo(address string, seed int) error {
	conn, err := dial(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	for round := range 5 {
		sent := bytes.Repeat([]byte{byte(seed + round)}, 1024)
		if _, err := conn.Write(sent); err != nil {
			return err
		}
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(conn, got); err != nil {
			return err
		}
		if !bytes.Equal(got, sent) {
			return fmt.Errorf("round %d: %.20q came back, want %.20q", round, got, sent)
		}
	}
	return nil
}

// A client that requests much and reads late eventually gets everything.
func TestSlowReaderGetsEverything(t *testing.T) {
	address := start(t, Documents(), Options{})
	conn, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const requests = 5000
	request := []byte("GET /depts/17 HTTP/1.1\r\n\r\n")
	_, want, _ := Documents()(request, nil)
	var writer sync.WaitGroup
	// Ends when all is written or at the deadline; waited for below.
	writer.Go(func() {
		for range requests {
			if _, err := conn.Write(request); err != nil {
				t.Error(err)
				return
			}
		}
	})
	time.Sleep(300 * time.Millisecond) // until buffers are full
	got := make([]byte, len(want[0]))
	for i := range requests {
		if _, err := io.ReadFull(conn, got); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if !bytes.Equal(got, want[0]) {
			t.Fatalf("answer %d is %.100q", i, got)
		}
	}
	writer.Wait()
}

// A request that arrives in pieces is answered once it is complete; one that never ends is not
// answered.
func TestPieces(t *testing.T) {
	address := start(t, Documents(), Options{})
	conn, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, piece := range []string{"GET /de", "pts/17 HT", "TP/1.1\r\n\r", "\n"} {
		if _, err := conn.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	_, want, _ := Documents()([]byte("GET /depts/17 HTTP/1.1\r\n\r\n"), nil)
	got := make([]byte, len(want[0]))
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want[0]) {
		t.Fatalf("%.100q, %v", got, err)
	}
	if _, err := conn.Write(bytes.Repeat([]byte("x"), 2*readSize)); err == nil {
		if n, err := conn.Read(got); err == nil {
			t.Errorf("%d bytes in answer to an endless request, want the end of the connection", n)
		}
	}
}

// quamina on the benchmark's files; the contract is in peers/README.md. quamina takes events as JSON text, so that
// reading the text is part of every time here.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"quamina.net/go/quamina"
)

type result struct {
	Peer    string  `json:"peer"`
	Version string  `json:"version"`
	Load    float64 `json:"load_seconds"`
	RSS     int64   `json:"rss_bytes"`
	Events  int     `json:"events"`
	Matches int     `json:"matches"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"events_per_second"`
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func say(key, text string) {
	line, err := json.Marshal(map[string]string{"peer": "quamina", key: text})
	must(err)
	fmt.Println(string(line))
	os.Exit(0)
}

func resident() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "VmRSS:") {
			kilobytes, _ := strconv.ParseInt(strings.Fields(line)[1], 10, 64)
			return kilobytes * 1024
		}
	}
	return 0
}

func lines(path string, each func([]byte)) {
	file, err := os.Open(path)
	must(err)
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(make([]byte, 1<<20), 1<<24)
	for scanner.Scan() {
		each(scanner.Bytes())
	}
	must(scanner.Err())
}

func load(path string, limit time.Duration) *quamina.Quamina {
	q, err := quamina.New()
	must(err)
	start := time.Now()
	id := 0
	lines(path, func(line []byte) {
		var subscription struct{ Tree []any }
		must(json.Unmarshal(line, &subscription))
		text, err := pattern(subscription.Tree)
		if err != nil {
			say("skipped", "not expressible: "+err.Error())
		}
		must(q.AddPattern(id, text))
		id++
		if time.Since(start) > limit {
			say("error", fmt.Sprintf("could not load in %.0f s", limit.Seconds()))
		}
	})
	return q
}

func count(q *quamina.Quamina, event []byte) int {
	found, err := q.MatchesForEvent(event)
	must(err)
	return len(found)
}

func latencies(q *quamina.Quamina, events [][]byte, limit time.Duration) ([]time.Duration, int) {
	var times []time.Duration
	matches := 0
	started := time.Now()
	for _, event := range events {
		start := time.Now()
		matches += count(q, event)
		times = append(times, time.Since(start))
		if time.Since(started) > limit {
			break
		}
	}
	return times, matches
}

func twoThreads(q *quamina.Quamina, events [][]byte, limit time.Duration) float64 {
	best := math.Inf(1)
	started := time.Now()
	for range 3 {
		var next atomic.Int64
		var group sync.WaitGroup
		start := time.Now()
		for range 2 {
			group.Add(1)
			go func(own *quamina.Quamina) {
				defer group.Done()
				for at := next.Add(1) - 1; at < int64(len(events)); at = next.Add(1) - 1 {
					count(own, events[at])
				}
			}(q.Copy())
		}
		group.Wait()
		best = min(best, time.Since(start).Seconds())
		if time.Since(started) > limit {
			break
		}
	}
	return best
}

func main() {
	// The directory comes first, and Go's flags end at the first argument that is none.
	directory := os.Args[1]
	flags := flag.NewFlagSet("quamina", flag.ExitOnError)
	loadLimit := flags.Float64("load-limit", 120, "seconds")
	matchLimit := flags.Float64("match-limit", 20, "seconds")
	must(flags.Parse(os.Args[2:]))
	seconds := func(limit float64) time.Duration { return time.Duration(limit * float64(time.Second)) }

	var events [][]byte
	lines(filepath.Join(directory, "events.jsonl"), func(line []byte) { events = append(events, slices.Clone(line)) })
	before := resident()
	start := time.Now()
	q := load(filepath.Join(directory, "subscriptions.jsonl"), seconds(*loadLimit))
	out := result{Peer: "quamina", Version: "quamina 1.5.1", Load: time.Since(start).Seconds(), RSS: resident() - before}

	times, matches := latencies(q, events, seconds(*matchLimit/2))
	out.Events, out.Matches = len(times), matches
	out.Seconds = twoThreads(q, events[:len(times)], seconds(*matchLimit/2))
	out.Rate = float64(len(times)) / out.Seconds
	slices.Sort(times)
	micros := func(at int) float64 { return float64(times[min(at, len(times)-1)].Nanoseconds()) / 1000 }
	out.P50, out.P99 = micros(len(times)/2), micros(len(times)*99/100)
	line, err := json.Marshal(out)
	must(err)
	fmt.Println(string(line))
}

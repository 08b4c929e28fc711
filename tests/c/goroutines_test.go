package main

import (
	"os"
	"reflect"
	"sync"
	"testing"
)

const ring = `{"pattern": "ring", "num_tasks": 3, "bandwidth_sensitive": true}`

// decisions returns the GPUs of rings that come and go on a cluster of its own.
func decisions(t *testing.T, text []byte) (found [][]int) {
	cluster, err := NewCluster(text, `{"gpu_model": "V100"}`, "mapa-preserve")
	if err != nil {
		t.Error(err)
		return nil
	}
	defer cluster.Free()
	for round := 0; round < 10; round++ {
		for _, id := range []string{"a", "b"} {
			decision, err := cluster.Place(id, ring)
			if err != nil {
				t.Error(err)
			}
			found = append(found, decision.GPUs)
		}
		if _, err := cluster.Place("a", ring); err == nil {
			t.Error("a job is placed twice")
		}
		for _, id := range []string{"a", "b"} {
			if err := cluster.Release(id); err != nil {
				t.Error(err)
			}
		}
	}
	return found
}

// TestGoroutines has more goroutines than threads: all get the same answers.
func TestGoroutines(t *testing.T) {
	if err := Start(os.Getenv("TOPOPLACE_PYTHON")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(os.Getenv("MACHINE"))
	if err != nil {
		t.Fatal(err)
	}
	expected := decisions(t, text)
	if len(expected) != 20 || len(expected[0]) != 3 {
		t.Fatal(expected)
	}
	var group sync.WaitGroup
	for i := 0; i < 50; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			if found := decisions(t, text); !reflect.DeepEqual(found, expected) {
				t.Error(found)
			}
		}()
	}
	group.Wait()
}

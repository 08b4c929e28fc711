"""Small logs of batch systems, written by hand."""

from __future__ import annotations

SWF = """; Version: 2.2
; MaxNodes: 4
;  MaxProcs: 32
; Note: MaxProcs: of the whole machine

   1    0   5 100   8 -1 -1  8  200 1048576  1 7 1 1 1 -1 -1 -1
   2   10   5  50  12 -1 -1 -1  -1      -1  0 7 1 1 2 -1 -1 -1
   3   11  -1  -1  -1 -1 -1  8  200      -1  5 7 1 1 1 -1 -1 -1
   4   12   3   0   1 -1 -1  1  200      -1  5 7 1 1 1 -1 -1 -1
   5    9   3  30   1 -1 -1  1  200      -1  5 7 1 1 1 -1 -1 -1
   6   20   3  60   4 -1 -1  4  200      -1  1 7 1 1 1 -1 -1 -1
   6   -1   3  20   4 -1 -1  4  200      -1  2 7 1 1 1 -1 -1 -1
   6   -1   9  40   4 -1 -1  4  200      -1  3 7 1 1 1 -1 -1 -1
   7   21   3 0.4   1 -1 -1  1  200      -1 -1 7 1 1 1 -1 -1 -1
"""

PBS = """
01/02/2013 10:00:00;Q;12.batch;queue=G
01/02/2013 10:10:00;S;12.batch;user=eve queue=G ctime=1357120800 start=1357121000
01/02/2013 10:30:00;E;12.batch;user=eve group=lab jobname=a=b;c queue=G ctime=1357120800 qtime=1357120810 etime=1357120810 start=1357121000 exec_host=n1/0*8+n2/0*8 Resource_List.nodect=2 Resource_List.place=scatter Resource_List.select=2:ncpus=8:ngpus=3:mem=22gb Resource_List.walltime=24:00:00 session=1 end=1357122600 Exit_status=0 resources_used.walltime=00:26:39
01/02/2013 10:31:00;L;license;floating license hour:0 day:0
01/02/2013 10:40:00;E;9.batch;queue=G qtime=1357120790 start=1357121000 Resource_List.nodes=2:fermi:ppn=4:gpus=1+n5:ppn=8:gpus=2#excl end=1357122600
01/02/2013 10:41:00;E;13.batch;queue=S ctime=1357120900 start=1357121000 Resource_List.ncpus=5 Resource_List.mem=512000kb Resource_List.nodes=1 end=1357122600
01/02/2013 10:42:00;E;14.batch;queue=G ctime=1357120901 start=0 Resource_List.nodes=1:gpus=1 end=1357122600
01/02/2013 10:43:00;E;15.batch;queue=G ctime=1357120902 start=1357121000 Resource_List.nodect=2 Resource_List.ncpus=5 Resource_List.ngpus=3 Resource_List.mem=8gb resources_used.walltime=50
"""  # noqa: E501

SACCT = """JobIDRaw|User|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocTRES|ReqTRES
7|eve|gpu|2026-01-02T10:00:10|2026-01-02T10:01:00|2026-01-02T10:11:00|600|60|1|billing=8,cpu=8,gres/gpu:v100=4,gres/gpu=4,mem=16G,node=1|cpu=8
7.batch|||2026-01-02T10:01:00|2026-01-02T10:01:00|2026-01-02T10:11:00|600||1|cpu=8,mem=16G,node=1|
8|eve|gpu|2026-01-02T10:00:00|2026-01-02T10:00:30|2026-01-02T10:00:50||UNLIMITED|2|cpu=4,gres/gpu:a100=8,gres/gpu:v100=8,mem=2048M,node=2|
9|adam|gpu|2026-01-02T10:02:00|Unknown|2026-01-02T10:03:00|0|60|1||cpu=1,gres/gpu=1
10|adam|gpu|2026-01-02T10:02:00|2026-01-02T10:04:00|Unknown|50|60|1|cpu=1,gres/gpu=1|
11|adam|cpu|2026-01-02T10:02:00|2026-01-02T10:04:00|2026-01-02T10:05:00|60|60|1|cpu=2,mem=1G,node=1|
12|adam|gpu|1767348000|1767348010|1767348020|10|60|1|cpu=1,gres/gpu=1,node=1|
12|adam|gpu|1767348000|1767348100|1767348150|50|60|1|cpu=1,gres/gpu=1,node=1|
"""

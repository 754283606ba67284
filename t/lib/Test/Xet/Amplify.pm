package Test::Xet::Amplify;

# Copyright (C) the ngx_http_xet_module authors

# Measures what a request to each route costs, compared with the bytes that the
# client sends.  The server has a Hub whose repo holds everything that makes a
# response long.  Each route of the tables gets one request; the counters are
# read while the server responds.
#
#     my $a = Test::Xet::Amplify->new();
#
#     for my $key ($a->list()) {
#         my $got = $a->measure($key);    # status, sent, got, statements,
#                                         # buffers, wal, rows, nginx, postgres
#         my $held = $a->held($key, 7);   # KiB per slow client; undef: a short
#                                         # response, or one that changes data
#     }
#
# A key is the method and the form of the path, as "GET reconstructions/:hash".
# ceiling($key) returns the upper limits: statements, buffers (8 KiB pages that
# PostgreSQL accessed), KiB of WAL, rows written, and KiB held for a slow
# client beyond the body that it sent.  None of these limits depends on time;
# the benchmarks measure CPU seconds.

use warnings;
use strict;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use Socket qw/ AF_INET SOCK_STREAM SOL_SOCKET SO_RCVBUF IPPROTO_TCP
	pack_sockaddr_in inet_aton /;
use Time::HiRes qw/ sleep /;

use Test::Xet;
use Test::Xet::Bytes;
use Test::Xet::Process qw/ children module_table slurp wait_for /;
use Test::Xet::Table;
use Test::Xet::Ztensor;

my $json = JSON::PP->new()->canonical();
my $files = 3000;
my $form = 'application/x-www-form-urlencoded';

# Limits of a cheap route, which reads or writes a few rows; they apply to all
# routes without a row below.

my %default = (status => 2, statements => 4, buffers => 400, wal => 64,
	rows => 40, held => 256);

# Limits of the other routes, and the reasons.

my %ceilings = (
	# long responses: one statement returns 500 entries, or 64 with titles
	'GET api/:type/:id/tree/:rev/:path' => { statements => 16,
		buffers => 40_000, held => 800 },
	'GET api/buckets/:id/tree/:path' => { statements => 4,
		buffers => 40_000, held => 800 },
	# the names in the body, parsed; usually in memory that an earlier
	# request has freed
	'POST api/:type/:id/paths-info/:rev' => { statements => 47,
		buffers => 40_000, held => 4000 },
	'POST api/buckets/:id/paths-info' => { statements => 12,
		buffers => 40_000, held => 4000 },
	'POST api/:type/:id/preupload/:rev' => { statements => 13,
		buffers => 25_000, held => 4000 },
	'GET api/:type/:id' => { statements => 12, buffers => 15_000,
		held => 400 },
	'GET api/:type/:id/revision/:rev' => { statements => 12,
		buffers => 15_000, held => 400 },
	'GET api/:type/:id/refs' => { statements => 4, held => 200 },
	'GET api/:type/:id/commits/:rev/:path' => { statements => 60,
		buffers => 4000, held => 150 },

	# an index finds repos; a search reads 5,000 rows a page
	'GET api/:type' => { buffers => 2000 },
	# shard_put is planned for the first time
	'POST shards' => { buffers => 1500 },
	'GET api/buckets' => { buffers => 2000 },

	# a page of 256 files
	'GET api/:type/:id/changes/:rev' => { buffers => 15_000, held => 800 },

	# file contents: the threads hold a chunk and a compressed block of it
	'GET api/lfs/:rev' => { held => 640 },
	'GET :repo/resolve/:rev/:path' => { held => 640 },
	'GET :repo/raw/:rev/:path' => { held => 640 },
	'GET files/:hash' => { held => 640 },

	# writes: a few rows in each table involved
	'POST api/repos/create' => { buffers => 1000 },
	'DELETE api/repos/delete' => { buffers => 2000 },
	'POST api/:type/:id/branch/:rev' => { buffers => 1000 },
	'POST api/:type/:id/tag/:rev' => { buffers => 1000 },
	# a row for each of the 6,000 files
	'POST api/:type/:id/super-squash/:rev' => { buffers => 200_000,
		wal => 30_000, rows => 8000 },
	'POST api/:type/:id/commit/:rev' => { buffers => 2000, wal => 128 },
	'POST :git/info/lfs/objects/batch' => { statements => 38,
		buffers => 80_000, held => 1500 },
	'PUT api/lfs/:rev' => { statements => 8, buffers => 4000 },
	'GET api/settings/repositories' => { buffers => 2000 },
	'GET chunks/:prefix/:hash' => { buffers => 1500 },
	'GET chunk/:prefix/:hash' => { buffers => 1500 },
	'POST files' => { statements => 8, buffers => 2000 },

	# refused: the xorb or file is missing, or the caller may not read it;
	# git is refused without an argument
	'DELETE api/buckets/:owner' => { status => 404 },
	'POST api/lfs/:rev' => { status => 404 },
	'GET v2/:id/manifests/:rev' => { status => 404 },
	'GET v2/:id/blobs/:rev' => { status => 404 },
	'GET :git/info/refs' => { status => 400 },
	'GET :repo/info/refs' => { status => 400 },
	'POST xorb-grants/:prefix/:hash' => { status => 404, buffers => 1500 },
	'POST xorb-commits/:prefix/:hash/grant/:grant' => { status => 404 },
	'GET buckets/:id/resolve/:path' => { status => 404 },
	'GET xorbs/:prefix/:hash' => { status => 403 },

	'PUT files' => { statements => 8, buffers => 2000 },
	'GET zt/:hash/reconstruction' => { statements => 6 },
	'GET zt/:hash/verify' => { statements => 6 },
	'DELETE repo' => { buffers => 2000 },
	'DELETE files/:hash' => { buffers => 2000 },
	'POST telemetry' => { buffers => 1000 }
);

# --------------------------------------------------------------------------
# the server and its data

sub new {
	my ($class, %o) = @_;

	# malloc() returns freed memory to the system immediately, so that the
	# resident memory of a worker is the memory that it uses

	$ENV{MALLOC_MMAP_THRESHOLD_} = 8192;
	$ENV{MALLOC_TRIM_THRESHOLD_} = 4096;
	$ENV{MALLOC_TOP_PAD_} = 0;

	my $t = Test::Xet->new(Test::Xet::Table::hub(undef,
		Test::Xet::Token::token_location()), workers => 1,
		server => 'listen 127.0.0.1:%%PORT_8081%% sndbuf=2k;'
		. ' xet_hub_pages /-/index.html;', %o);
	my $self = bless { t => $t, fresh => 0 }, $class;

	$t->token_key();
	$t->pg_start();
	$t->sql('ALTER SYSTEM SET shared_preload_libraries ='
		. " 'pg_stat_statements'", user => 'postgres');
	$t->sql('ALTER SYSTEM SET autovacuum = off', user => 'postgres');
	$t->pg_restart();
	$t->sql('CREATE EXTENSION pg_stat_statements SCHEMA public',
		user => 'postgres');
	$t->run();

	$self->fill();

	return $self;
}

sub t { return $_[0]->{t} }

sub create {
	my ($self, $name, @owner) = @_;

	return $self->send('POST', '/api/repos/create', { name => $name,
		organization => 'me', @owner });
}

# Sends a JSON or text body, and returns the response, which must be 2xx.

sub send {
	my ($self, $method, $uri, $body, %headers) = @_;

	my $text = ref $body ? $json->encode($body) : $body;
	my $r = $self->{t}->http($method, $uri, { defined $text
		? ('Content-Type' => 'application/json') : (), %headers },
		defined $text ? \$text : undef, timeout => 120);

	die "$method $uri: " . $r->summary() . "\n" if $r->{status} !~ /^2/;

	return $r;
}

sub fill {
	my ($self) = @_;

	my $t = $self->{t};

	$self->create($_) for qw/ m real /;
	$self->send('POST', '/api/buckets/me/b', '{}');

	# a file by LFS, its commit, and a token of the repo

	my $data = random_bytes(5, 300_000);
	my $sha256 = sha256_hex($data);
	my $batch = $self->send('POST', '/me/real.git/info/lfs/objects/batch',
		{ operation => 'upload', transfers => [ 'basic' ], objects =>
			[ { oid => $sha256, size => length($data) } ] });
	my ($put) = $batch->json()->{objects}[0]{actions}{upload}{href}
		=~ m!^http://[^/]+(/.*)!;

	$self->send('PUT', $put, $data);
	$self->send('POST', '/api/models/me/real/commit/main', join("\n",
		map { $json->encode($_) } { key => 'header', value => {
			summary => 's' } }, { key => 'lfsFile', value => {
			path => 'd/f.bin', algo => 'sha256', oid => $sha256,
			size => length($data) } }));

	my $token = $self->send('GET',
		'/api/models/me/real/xet-write-token/main')->json();

	@$self{qw/ data sha256 hash token deletes /} = ($data, $sha256,
		$t->head('/me/real/resolve/main/d/f.bin')
			->header_value('X-Xet-Hash'),
		"Bearer $token->{accessToken}",
		$t->auth('delete', 'a/b')->{Authorization});
	$self->{chunk} = hash_file($data)->{chunks}[0]{hash};
	$self->{xorb} = make_xorb($data)->{hash};
	$self->{zt} = $self->send('PUT', '/cas/v1/files', zt_file([ [ 't',
		{ shape => [ 1000 ], data => pack('f*', 1 .. 1000) } ] ])
		->{bytes}, Authorization => $self->{token})->json()->{hash};

	$t->sql(<<"EOF_SQL");
INSERT INTO xet.hub_commits (repo_id, line, seq, oid, parent, who, title,
                             message)
SELECT r.id, 0, n, substr(sha256(int8send(n)), 1, 20),
       CASE WHEN n = 2 THEN (SELECT c.oid FROM xet.hub_commits c
                              WHERE c.repo_id = r.id AND c.seq = 1)
            ELSE substr(sha256(int8send(n - 1)), 1, 20) END, 'me',
       repeat('"', 4096), repeat('"', 65536)
  FROM generate_series(2, 200) n, xet.hub_repos r WHERE r.name = 'm';
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, hash, size,
                           sha256, made)
SELECT r.id, 0, 'd/' || lpad(i::text, 5, '0') || repeat('"', 250) || '/'
       || repeat('"', 250), CASE WHEN r.kind = 3 THEN 1 ELSE 200 END,
       'd/' || lpad(i::text, 5, '0') || repeat('"', 250),
       sha256(('f' || i)::bytea), 400, sha256(('d' || i)::bytea),
       substr(sha256(int8send(200)), 1, 20)
  FROM generate_series(1, $files) i, xet.hub_repos r WHERE r.name IN ('m', 'b');
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, made)
SELECT r.id, 0, 'd/' || lpad(i::text, 5, '0') || repeat('"', 250),
       CASE WHEN r.kind = 3 THEN 1 ELSE 200 END, 'd',
       substr(sha256(int8send(200)), 1, 20)
  FROM generate_series(1, $files) i, xet.hub_repos r WHERE r.name IN ('m', 'b');
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, made)
SELECT r.id, 0, 'd', CASE WHEN r.kind = 3 THEN 1 ELSE 200 END, '',
       substr(sha256(int8send(200)), 1, 20)
  FROM xet.hub_repos r WHERE r.name IN ('m', 'b');
UPDATE xet.hub_lines l SET last = CASE WHEN r.kind = 3 THEN l.last ELSE 200 END,
       files = $files
  FROM xet.hub_repos r WHERE r.id = l.repo_id AND r.name IN ('m', 'b');
UPDATE xet.hub_refs f SET oid = substr(sha256(int8send(200)), 1, 20)
  FROM xet.hub_repos r WHERE r.id = f.repo_id AND r.name = 'm';
INSERT INTO xet.hub_refs
SELECT r.id, 'heads/b' || n || repeat('x', 200),
       substr(sha256(int8send(200)), 1, 20)
  FROM generate_series(1, 1000) n, xet.hub_repos r WHERE r.name = 'm';
INSERT INTO xet.hub_repos (kind, owner, name)
SELECT k, 'o', 'r' || n FROM generate_series(1, 2000) n,
       unnest('{0,3}'::integer[]) k;
INSERT INTO xet.hub_lines (repo_id, line, last)
SELECT r.id, 0, 1 FROM xet.hub_repos r WHERE r.owner = 'o';
INSERT INTO xet.hub_refs
SELECT r.id, 'heads/main', substr(sha256(int8send(1)), 1, 20)
  FROM xet.hub_repos r WHERE r.owner = 'o';
ANALYZE;
EOF_SQL

	$self->{paths} = [ map { sprintf('d/%05d', $_) . '"' x 250 . '/'
		. '"' x 250 } 1 .. $files ];
}

# --------------------------------------------------------------------------
# the routes, and a request for each

sub list {
	my ($self) = @_;

	return @{ $self->{keys} } if $self->{keys};

	my @keys;

	for my $route (@{ module_table('hub') }) {
		for my $method (grep { $_ ne 'HEAD' } @{ $route->{methods} }) {
			my $key = "$method $route->{form}";

			$self->{routes}{$key} = $route;
			push @keys, $key;
		}
	}

	for my $route (@{ module_table('routes') }) {
		for my $method (@{ $route->{methods} }) {
			next if $method eq 'HEAD' && @{ $route->{methods} } > 1;

			my $key = "$method $route->{form}";

			next if $self->{routes}{$key};

			$self->{routes}{$key} = $route;
			push @keys, $key;
		}
	}

	return @{ $self->{keys} = \@keys };
}

# Returns the rows of %ceilings that have no route.

sub strange { return grep { !$_[0]->{routes}{$_} } sort keys %ceilings }

sub ceiling {
	my ($self, $key) = @_;

	return { %default, %{ $ceilings{$key} || {} } };
}

# Returns (method, URI, headers, body), undef if the test has no such request.

sub request {
	my ($self, $key) = @_;

	my $route = $self->{routes}{$key};
	my ($method) = split(/ /, $key);
	my $name = $route->{handler};

	return $self->api_request($method, $route) if @{ $route->{versions} };

	my $make = $self->can('hub_' . lc($method) . "_$name")
		|| $self->can("hub_$name");
	my %o = $make ? $make->($self, $route) : ();
	my $path = $o{path} // $route->{form};
	my $id = $o{id} // ($path =~ /buckets/ ? 'me/b' : 'me/m');

	$path = '' if $path eq ':root';
	$path =~ s!:type!models!;
	$path =~ s!:(?:id|repo)!$id!;
	$path =~ s!:git!$id.git!;
	$path =~ s!:owner!me!;
	$path =~ s!:view!tree!;
	$path =~ s!:rev!$o{rev} // 'main'!e;
	$path =~ s!:path!$o{file} // ''!e;
	$path =~ s!/\z!! if $path =~ /^api/;

	return ($method, "/$path" . ($o{args} // ''), { $o{type}
		? ('Content-Type' => $o{type}) : () }, defined $o{body}
		? ref $o{body} ? $json->encode($o{body}) : $o{body}
		: $method =~ /^P/ ? '{}' : undef);
}

sub hub_create {
	return (body => { name => 'new' . ++$_[0]->{fresh},
		organization => 'me' });
}

sub hub_delete {
	my ($self) = @_;

	my $name = 'new' . ++$self->{fresh};

	$self->create($name);

	return (body => { name => $name, organization => 'me' });
}

sub hub_move {
	my ($self) = @_;

	my $name = 'new' . ++$self->{fresh};

	$self->create($name);

	return (body => { fromRepo => "me/$name", toRepo => "me/${name}x" });
}

sub hub_bucket_create { return (id => 'me/new' . ++$_[0]->{fresh}) }

sub hub_bucket_delete {
	my ($self) = @_;

	my $id = 'me/new' . ++$self->{fresh};

	$self->send('POST', "/api/buckets/$id", '{}');

	return (id => $id);
}

sub hub_settings { return (body => { private => JSON::PP::false }) }
sub hub_list { return (args => '?search=nothing-is-called-so') }
sub hub_yaml { return (body => { content => "---\na: b\n---\n" }) }
sub hub_info { return (args => '?blobs=true') }
sub hub_tree { return (args => '?recursive=1&expand=1') }
sub hub_commits { return () }

sub hub_paths {
	my ($self) = @_;

	return (type => $form, body => join('&', 'expand=true', map {
		'paths=' . s/"/%22/gr } @{ $self->{paths} }));
}

sub hub_preupload {
	my ($self) = @_;

	return (body => { files => [ map { { path => $_, size => 1 } }
		@{ $self->{paths} } ] });
}

sub hub_post_branch { return (rev => 'new' . ++$_[0]->{fresh}) }

sub hub_delete_branch {
	my ($self) = @_;

	my $rev = 'new' . ++$self->{fresh};

	$self->send('POST', "/api/models/me/m/branch/$rev", '{}');

	return (rev => $rev);
}

sub hub_post_tag { return (body => { tag => 'new' . ++$_[0]->{fresh} }) }

sub hub_delete_tag {
	my ($self) = @_;

	my $tag = 'new' . ++$self->{fresh};

	$self->send('POST', '/api/models/me/m/tag/main', { tag => $tag });

	return (rev => $tag);
}

sub hub_commit {
	my ($self, $route) = @_;

	my $name = 'new' . ++$self->{fresh};

	return (type => 'application/x-ndjson', body => join("\n",
		map { $json->encode($_) } $route->{form} =~ /buckets/
		? { type => 'addFile', path => "big/$name", xetHash => '0' x 64,
			mtime => 0 }
		: ({ key => 'header', value => { summary => 's' } },
			{ key => 'file', value => { path => "a/b/c/d/$name",
				encoding => 'base64', content => '' } })));
}

sub hub_duplicate {
	my ($self) = @_;

	return (id => 'me/real', body => { target => { type => 'model',
		name => 'me/m' }, files => [ { xetHash => $self->{hash},
		sha256 => $self->{sha256}, filename => 'a' } ] });
}

sub hub_lfs_batch {
	my ($self) = @_;

	return (id => 'me/real', type => 'application/vnd.git-lfs+json',
		body => { operation => 'upload', transfers => [ 'basic' ],
			objects => [ map { { oid => sha256_hex($_),
				size => 1 } } 1 .. 9000 ] });
}

sub hub_lfs_put {
	my ($self) = @_;

	my $data = random_bytes(++$self->{fresh}, 20_000);
	my $r = $self->send('POST', '/me/real.git/info/lfs/objects/batch',
		{ operation => 'upload', transfers => [ 'basic' ], objects =>
			[ { oid => sha256_hex($data), size => 20_000 } ] });
	my ($put) = $r->json()->{objects}[0]{actions}{upload}{href}
		=~ m!^http://[^/]+/(.*)!;

	return (path => $put, body => $data);
}

sub hub_lfs_verify {
	my ($self) = @_;

	my %put = $self->hub_lfs_put();

	return (path => $put{path}, body => '{}');
}

sub hub_lfs_get {
	my ($self) = @_;

	my $r = $self->send('POST', '/me/real.git/info/lfs/objects/batch',
		{ operation => 'download', transfers => [ 'basic' ], objects =>
			[ { oid => $self->{sha256},
				size => length($self->{data}) } ] });
	my ($get) = $r->json()->{objects}[0]{actions}{download}{href}
		=~ m!^http://[^/]+/(.*)!;

	return (path => $get);
}

sub hub_resolve {
	my ($self, $route) = @_;

	return $route->{form} =~ /buckets/ ? (file => escaped($self))
		: (id => 'me/real', file => 'd/f.bin');
}

sub hub_raw { return hub_resolve(@_) }

sub escaped { return $_[0]->{paths}[0] =~ s/"/%22/gr }

sub hub_changes {
	my ($self) = @_;

	return (rev => ($self->{t}->sql("SELECT encode(substr(sha256("
		. "int8send(200)), 1, 20), 'hex')"))[0]);
}

sub hub_read_token { return $_[1]{form} =~ /buckets/ ? () : (id => 'me/real') }
sub hub_write_token { return $_[1]{form} =~ /buckets/ ? () : (id => 'me/real') }

# --------------------------------------------------------------------------
# the API, with a token of the Hub; for data outside of the Hub, with a token of
# the API

sub api_request {
	my ($self, $method, $route) = @_;

	my $make = $self->can("api_$route->{handler}");
	my %o = $make ? $make->($self, $route, $method) : ();
	my $version = $route->{versions}[-1] ? "/$route->{versions}[-1]" : '';
	my %parts = (prefix => 'default', grant => 'ab' x 32,
		hash => $o{hash} // ($route->{form} =~ /^zt/ ? $self->{zt}
			: $self->{hash}));
	my $path = $route->{form} =~ s/:(\w+)/$parts{$1}/gr;

	return ($method, "/cas$version/$path" . ($o{args} // ''),
		{ Authorization => $o{token} // $self->{token}, $o{headers}
			? %{ $o{headers} } : () }, $o{body});
}

sub api_batch { return (args => "?file_id=$_[0]->{hash}") }

sub api_chunk_hashes {
	return (headers => { 'X-Range-Dirty' => 'bytes=0-9' });
}

sub api_chunk { return (hash => $_[0]->{chunk}) }
sub api_xorb_head { return (hash => $_[0]->{xorb}) }
sub api_xorb_get { return (hash => $_[0]->{xorb}) }
sub api_grant { return (hash => 'ef' x 32) }
sub api_grant_commit { return (hash => 'ef' x 32) }

sub api_zt_object { return (args => '?i=0') }
sub api_zt_data { return (args => '?i=0') }
sub api_zt_reconstruction { return (args => '?i=0') }
sub api_zt_verify { return (args => '?i=0') }

sub api_file_delete {
	my ($self) = @_;

	my $put = $self->send('PUT', '/cas/v1/files', 'goes'
		. ++$self->{fresh}, Authorization => $self->{deletes});

	return (token => $self->{deletes}, hash => $put->json()->{hash});
}

sub api_repo_delete {
	my ($self) = @_;

	$self->send('PUT', '/cas/v1/files', 'goes' . ++$self->{fresh},
		Authorization => $self->{deletes});

	return (token => $self->{deletes});
}

sub api_xorb_post {
	my ($self) = @_;

	my $xorb = make_xorb(random_bytes(1000 + ++$self->{fresh}, 5000));

	return (hash => $xorb->{hash}, body => $xorb->{bytes});
}

sub api_shard {
	my ($self, $route) = @_;

	my $xorb = make_xorb(random_bytes(1000 + ++$self->{fresh}, 5000));

	$self->send('POST', "/cas/v1/xorbs/default/$xorb->{hash}",
		$xorb->{bytes}, Authorization => $self->{token});

	return (body => make_shard({ files => [ { terms => [ {
		xorb => $xorb->{hash}, start => 0,
		end => scalar @{ $xorb->{chunks} } } ],
		verification => JSON::PP::true } ],
		xorbs => [ $xorb ] })->{bytes});
}

sub api_file_put {
	return (body => random_bytes(1000 + ++$_[0]->{fresh}, 5000));
}

sub api_telemetry {
	return (body => '{"event":"event","metrics":{"n":1}}',
		headers => { 'Content-Type' => 'application/json' });
}

# --------------------------------------------------------------------------
# the counters

sub measure {
	my ($self, $key) = @_;

	my $t = $self->{t};
	my ($method, $uri, $headers, $body) = $self->request($key);

	return unless defined $method;

	my $rows = $self->rows();
	my %cpu = $self->cpu();

	$t->sql('SELECT public.pg_stat_statements_reset()', user => 'postgres');

	my $r = $t->http($method, $uri, $headers, defined $body ? \$body
		: undef, timeout => 120);
	my %after = $self->cpu();
	my ($n, $buffers, $wal) = split(/\|/, ($t->sql(<<'EOF_SQL',
SELECT coalesce(sum(calls), 0), coalesce(sum(shared_blks_hit
       + shared_blks_read), 0), coalesce(sum(wal_bytes), 0)
  FROM public.pg_stat_statements
 WHERE query ~ 'xet\.[a-z_]+\(' AND query !~
       'xet\.(in_time|job_|copy_ids_take|sweep|figures|quota_any|usage_settle)'
EOF_SQL
		user => 'postgres'))[0]);

	return { status => $r->{status}, answer => $r,
		sent => length($uri) + length($body // ''),
		got => length($r->{body} // ''), statements => $n,
		buffers => $buffers, wal => $wal / 1024,
		rows => abs($self->rows() - $rows),
		map { $_ => $after{$_} - $cpu{$_} } qw/ nginx postgres / };
}

sub rows {
	my ($self) = @_;

	my $rows = $self->{t}->rows();
	my $sum = 0;

	$sum += $_ for values %$rows;

	return $sum;
}

# Returns the CPU seconds used so far.

sub cpu {
	my ($self) = @_;

	my %pids = (nginx => [ $self->{t}->worker_pids() ],
		postgres => [ $self->{t}->pg_backends() ]);

	return map { my $name = $_; my $sum = 0;
		$sum += ticks($_) for @{ $pids{$name} };
		($name => $sum / 100) } sort keys(%pids);
}

sub ticks {
	my ($pid) = @_;

	my $stat = eval { slurp("/proc/$pid/stat") } // return 0;
	my @f = split(' ', $stat =~ s/^.*\)//r);

	return $f[11] + $f[12];
}

# Returns the KiB that a worker holds for a client that reads nothing of a long
# response, beyond what the client sent.  Clients connect one by one, each after
# the worker's memory has stopped growing.  The result is the median of the
# increments, because a later client may use heap memory that the body of an
# earlier request has left free.

sub held {
	my ($self, $key, $n) = @_;

	my $t = $self->{t};
	my ($method, $uri, $headers, $body) = $self->request($key);

	return unless $method eq 'GET'
		|| $key =~ m!paths-info|preupload|objects/batch!;

	my ($worker) = $t->worker_pids();
	my @slow = slow($t, $method, $uri, $headers, $body);
	my @had = $self->still($worker);

	for (1 .. $n) {
		push(@slow, slow($t, $method, $uri, $headers, $body));
		push(@had, $self->still($worker));
	}

	close($_) for @slow;
	sleep(0.2);

	my @more = sort { $a <=> $b } map { $had[$_] - $had[$_ - 1] } 1 .. $n;

	return $more[$n / 2] - length($body // '') / 1024;
}

# Returns the worker's memory once it sleeps, no statement runs, and the size
# is stable.

sub still {
	my ($self, $worker) = @_;

	my ($last, $same) = (-1, 0);

	wait_for(60, sub {
		my $now = anon($worker);
		my $busy = $self->{t}->sql('SELECT count(*)'
			. ' FROM pg_stat_activity'
			. " WHERE state <> 'idle' AND pid <> pg_backend_pid()"
			. " AND backend_type = 'client backend'");

		my $sleeps = slurp("/proc/$worker/status")
			=~ /^State:\s+S/m;

		$same = $now == $last && !$busy && $sleeps ? $same + 1 : 0;
		$last = $now;
		sleep(0.2);

		return $same >= 3;
	});

	return $last;
}

sub anon {
	my ($pid) = @_;

	my ($kib) = slurp("/proc/$pid/status") =~ /^RssAnon:\s+(\d+)/m;

	return $kib;
}

sub slow {
	my ($t, $method, $uri, $headers, $body) = @_;

	socket(my $s, AF_INET, SOCK_STREAM, IPPROTO_TCP) or die "socket: $!\n";
	setsockopt($s, SOL_SOCKET, SO_RCVBUF, 2048);
	connect($s, pack_sockaddr_in($t->port(8081), inet_aton('127.0.0.1')))
		or die "connect: $!\n";

	my $text = join("\r\n", "$method $uri HTTP/1.1", 'Host: localhost',
		'Connection: close', (map { "$_: $headers->{$_}" }
			keys(%$headers)), defined $body
			? 'Content-Length: ' . length($body) : (), '', '')
		. ($body // '');

	while (length($text)) {
		my $n = syswrite($s, $text) // die "write: $!\n";

		substr($text, 0, $n, '');
	}

	vec(my $in = '', fileno($s), 1) = 1;
	select($in, undef, undef, 60) or die "no response to $uri\n";

	return $s;
}

1;

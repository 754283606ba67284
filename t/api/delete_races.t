#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Deletion and collection while other requests run: between finding a xorb and
# recording that it was advertised, between a shard's look-up and its commit,
# and during reads.  Many clients also register and delete the same files
# concurrently on two nodes; their responses are compared with a model.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Collect;
use Test::Xet::Files;
use Test::Xet::Process qw/ spew wait_for /;
use Test::Xet::Real;

use File::Temp qw/ tempdir /;
use POSIX ();
use Time::HiRes qw/ time /;

my %conf = (workers => 2, log => 'info',
	pg_conf => "max_connections = 120\n",
	Test::Xet::Token::beside());

my $t = Test::Xet->new(%conf);

$t->token_key();
$t->run();

my $other = Test::Xet->new(%conf, beside => $t);

$other->token_key();
$other->run();

my @nodes = ($t, $other);
my $dir = tempdir(CLEANUP => 1);

# allows an error of nginx, for a data URL whose copy is gone

$_->allow(qr/open\(\) ".*" failed \(2: No such file/) for @nodes;

# --------------------------------------------------------------------------
# a xorb is deleted after the look-up, and before the database records that the
# xorb was advertised

{
	my $data = mix(1, 300000);
	my ($file, $xorb);

	my %ask = (
		'HEAD' => sub { $t->http_start('HEAD',
			"/api/v1/xorbs/default/$xorb->{hash}", {}) },
		'grant' => sub { $t->http_start('POST',
			"/api/v1/xorb-grants/default/$xorb->{hash}",
			{ 'Content-Length' => 0 }) },
		'chunk' => sub { $t->http_start('GET', '/api/v1/chunks/default/'
			. $xorb->{chunks}[0]{hash}, {}) },
		'POST' => sub { $t->http_start('POST',
			"/api/v1/xorbs/default/$xorb->{hash}",
			{ 'Content-Length' => length($xorb->{bytes}) },
			$xorb->{bytes}) },
		'PUT' => sub { $t->http_start('PUT', '/api/v1/files',
			{ 'Content-Length' => length($data) }, $data) }
	);

	my %want = (HEAD => 404, grant => 404, chunk => 404, POST => 200,
		PUT => 200);

	for my $name (sort keys %ask) {
		$file = $t->upload($data);
		$xorb = $file->{xorbs}[0];

		# the response is sent after the record that the xorb was
		# advertised

		if ($want{$name} == 404) {
			$t->sql('UPDATE xet.xorbs SET advertised_on = NULL');
			is(answer($ask{$name}->(), $name)->{status}, 200,
				"$name: there");
			is($t->sql('SELECT count(*) FROM xet.xorbs WHERE'
				. ' advertised_on = xet.today()'), '1',
				"$name: is recorded");
		}

		$t->sql('UPDATE xet.xorbs SET advertised_on = NULL');

		my $hold = $t->pg_session();

		$hold->run('BEGIN');
		$hold->run("DELETE FROM xet.$_")
			for qw/ file_xorbs files chunks xorbs /;

		my $c = $ask{$name}->();

		ok(wait_for(10, sub { $t->pg_blocked() == 1 }),
			"$name: the record waits");
		$hold->run('COMMIT');

		my $r = answer($c, $name);

		is($r->{status}, $want{$name}, "$name: gone") or
			diag($r->summary());

		next if $want{$name} == 404;

		is($t->post('/api/v1/shards', \$file->{shard})->{status}, 200,
			"$name: registered") if $name eq 'POST';
		is($t->get("/api/v1/files/$file->{hash}")->{body}, $data,
			"$name: the file is stored");
	}

	# a trigger undoes every such record: the number of retries is bounded

	$t->upload($data);
	$t->sql(<<'EOC');
CREATE FUNCTION public.forgets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.advertised_on := NULL;
    RETURN NEW;
END;
$$;
CREATE TRIGGER forgets BEFORE UPDATE ON xet.xorbs
    FOR EACH ROW EXECUTE FUNCTION public.forgets();
EOC
	is(answer($ask{chunk}->(), 'GET')->{status}, 404,
		'chunk: a miss, if the record is lost');
	is(answer($ask{PUT}->(), 'PUT')->{status}, 200,
		'PUT: works without the record');
	$t->sql('DROP TRIGGER forgets ON xet.xorbs');
	is(answer($ask{chunk}->(), 'GET')->{status}, 200, 'chunk: a hit then');
}

# --------------------------------------------------------------------------
# a known file is deleted before the shard commits: the client retries

{
	my $data = mix(2, 300000);
	my $file = $t->upload($data);
	my $path = "$dir/known";

	spew($path, $data);

	my %bodies = ('PUT /api/v1/files' => $data,
		map { $_ => $file->{shard} } 'POST /api/v1/shards',
		'POST /api/v2/shards');

	for my $what (sort keys %bodies) {
		my ($method, $uri) = split(/ /, $what);

		my $again = sub {
			my ($start) = @_;

			my $hold = $t->pg_session();

			$hold->run('BEGIN');
			$hold->run('SELECT id FROM xet.files FOR UPDATE');

			my $c = $start->();

			ok(wait_for(30, sub { $t->pg_blocked() == 1 }),
				"$what: the commit waits");
			$hold->run("SELECT xet.file_delete(hash) FROM xet.files"
				. ' WHERE hash IS NOT NULL');
			$hold->run('COMMIT');

			return $c;
		};

		my $r = answer($again->(sub { $t->http_start($method, $uri,
			{ 'Content-Length' => length($bodies{$what}) },
			$bodies{$what}) }), $method);

		my $status = $uri =~ /v2/ && $r->{status} == 200
			? join(' ', $r->{body} =~
				/"(?:status|code)": ?"?(\w+)/g)
			: $r->{status};

		like($status, qr/503|overloaded/, "$what: 503")
			or diag($r->summary());
		is($t->get("/api/v1/files/$file->{hash}")->{status}, 404,
			"$what: not registered");
		is($t->http($method, $uri, {}, \$bodies{$what})->{status}, 200,
			"$what: a retry");
		is($t->get("/api/v1/files/$file->{hash}")->{body}, $data,
			"$what: the retry registers it");

		next if $method eq 'PUT';

		# clients retry by themselves

		$r = $uri =~ /v1/
			? xet_wait($again->(sub {
				xet_start($t, 'put', $path) }))
			: hf_xet_wait($again->(sub {
				hf_xet_start({}, 'upload', 'session',
					$t->url('/api'), $path) }));

		ok(ref $r eq 'HASH' ? $r->{code} == 0 : @$r == 1,
			"$what: a client retries");
		is($t->get("/api/v1/files/$file->{hash}")->{body}, $data,
			"$what: the client's retry registers it");
	}

	clear();
}

# a repo gets the file just before the store deletes it

{
	my $hash = put(mix(2, 300000));
	my $hold = $t->pg_session();

	$t->sql("SELECT xet.repo_create('a/a')");
	$hold->run('BEGIN');
	$hold->run("SELECT xet.repo_add('a/a', hash) FROM xet.files"
		. ' WHERE hash IS NOT NULL');

	my $c = $t->http_start('DELETE', "/api/v1/files/$hash", {});

	ok(wait_for(10, sub { $t->pg_blocked() == 1 }),
		'the store waits for the repo');
	$hold->run('COMMIT');
	is(answer($c, 'DELETE')->{status}, 409,
		'the store refuses: a repo has the file');
	is($other->get("/repo/v1/files/$hash", $other->auth('read', 'a/a'))
		->{status}, 200, 'the repo has it');
	is($t->http('DELETE', '/repo/v1/repo', $t->auth('delete', 'a/a'))
		->{status}, 204, 'the repo is deleted');
	clear();
}

# --------------------------------------------------------------------------
# deletion under readers

{
	my $size = 40_000_000;
	my $data = random_bytes(7, $size);
	my $begun = $t->log_size();

	for my $case (qw/ gone back elsewhere /) {
		my $kept = put(substr($data, 0, 2_000_000));
		my $hash = put($data);

		my ($shared, $fetch) = map { $t->get("/api/v1/reconstructions"
			. "/$_")->json()->{fetch_info} } $kept, $hash;
		my ($url) = map { $fetch->{$_}[0] }
			grep { !$shared->{$_} } keys %$fetch;
		my ($path) = $url->{url} =~ m!^http://[^/]+(/.*)!;

		# three responses in progress, two of them to slow readers

		my @slow = map { my $c = $_->http_start('GET',
			"/api/v1/files/$hash", {}, undef, close => 1);
			[ $c, $c->read_some(100000, 10) ] } @nodes;
		my $range = $t->http_start('GET', "/api/v1/files/$hash",
			{ Range => 'bytes=30000000-30000099' });

		is(answer($range, 'GET')->{status}, 206, "$case: a range");
		is($t->http('DELETE', "/api/v1/files/$hash")->{status}, 204,
			"$case: deleted");
		cmp_ok(collect($t), '>', 0, "$case: collected");

		is(put($data), $hash, "$case: put again") if $case eq 'back';
		is($t->upload($data, xorb_chunks => 90)->{hash}, $hash,
			"$case: in other xorbs") if $case eq 'elsewhere';

		for (@slow) {
			my ($c, $text) = @$_;

			$text .= $c->read_some(2 * $size, 60);
			$text =~ s/\A(.*?\r\n\r\n)//s;

			ok($text eq substr($data, 0, length($text)),
				"$case: no wrong byte");

			is(length($text), $size, "$case: all bytes")
				if $case ne 'gone';
			cmp_ok(length($text), '<', $size, "$case: cut")
				if $case eq 'gone';

			$c->close();
		}

		is($t->get("/api/v1/files/$hash", { Range =>
			'bytes=30000000-30000099' })->{status},
			$case eq 'gone' ? 404 : 206,
			"$case: a later reader");
		ok($t->get("/api/v1/files/$kept")->{body}
			eq substr($data, 0, 2_000_000),
			"$case: a file that shares xorbs");
		is($t->get($path, { Range => "bytes=$url->{url_range}{start}-"
			. $url->{url_range}{end} })->{status}, 404,
			"$case: an earlier URL");
		is($t->sql('SELECT count(*) FROM xet.xorbs'
			. ' WHERE damaged_at IS NOT NULL'), '0',
			"$case: nothing is damaged");
		clear();
	}

	unlike($_->log(), qr/can't be read|is missing or has another size/,
		'readers: no damage in the log') for @nodes;
	unlike($t->log($begun), qr/\[(?:alert|emerg)\]/, 'readers: no alert');
}

# A copy is missing, and its row is deleted before the loss is recorded.  If the
# request has to wait for more than a second, it gives up and reports a lost
# copy (500); then the test is repeated.

{
	my $status = 500;

	for (1 .. 10) {
		my $hash = put(mix(3, 300000));

		$t->remove_copy($_) for grep { /^xorbs/ } $t->files_in_store();

		my $hold = $t->pg_session();

		$hold->run('BEGIN');
		$hold->run("DELETE FROM xet.$_")
			for qw/ file_xorbs files chunks xorbs /;

		my $c = $t->http_start('GET', "/api/v1/files/$hash", {});

		wait_for(10, sub { $t->pg_blocked() == 1 });
		$hold->run('COMMIT');

		$status = answer($c, 'GET')->{status};
		last if $status != 500;

		$t->allow(qr/can't be read/);
	}

	is($status, 404, 'readers: a collected file is not lost');
}

# an existence check finds that a copy is missing, and its row is deleted before
# the loss is recorded

for my $case (qw/ gone lost /) {
	my $x = $t->upload(mix(3, 300000))->{xorbs}[0];

	$t->remove_copy($t->copy($x->{hash}));

	my $from = $t->log_size();
	my $hold = $t->pg_session();

	$hold->run('BEGIN');
	$hold->run("DELETE FROM xet.$_")
		for $case eq 'gone' ? qw/ file_xorbs files chunks xorbs / : ();

	is($t->head("/api/v1/xorbs/default/$x->{hash}")->{status}, 404,
		"HEAD: its copy is missing, $case");
	wait_for(10, sub { $t->pg_blocked() == 1 }) if $case eq 'gone';
	$hold->run('COMMIT');
	ok(wait_for(10, sub { $t->pg_blocked() == 0 }),
		"HEAD: the report is done, $case");

	my $line = qr/xorb $x->{hash}\S* is missing or has another size/;

	if ($case eq 'gone') {
		unlike($t->log($from), $line, 'HEAD: no loss in the log');

	} else {
		ok(wait_for(10, sub { $t->log($from) =~ $line }),
			'HEAD: the loss is in the log');
		$t->allow($line);
	}

	clear_rows();
}

# --------------------------------------------------------------------------

my $seed = $ENV{XET_TEST_SEED} || 1;

storm('open', '');
storm('repos', 'a/a', 'b/b');
storm('both', '', 'a/a');

$t->done();

# --------------------------------------------------------------------------

sub answer {
	my ($c, $method) = @_;

	my $r = $c->response($method =~ /^[A-Z]+$/ ? $method : 'GET',
		timeout => 60);

	$c->close();

	return $r;
}

sub put {
	my ($bytes) = @_;

	my $r = $t->put('/api/v1/files', \$bytes, {}, timeout => 60);

	die "put: $r->{status} $r->{body}\n" if $r->{status} != 200;

	return $r->json()->{hash};
}

# Deletes the rows; their files are already gone.

sub clear_rows {
	$t->sql('SELECT xet.file_delete(hash) FROM xet.files'
		. ' WHERE hash IS NOT NULL');
	collect_rows($t);
	$t->sql('DELETE FROM xet.gc_copies');
}

# Checks that the collector leaves no rows and copies of deleted files.

sub clear {
	$t->sql('SELECT xet.file_delete(hash) FROM xet.files'
		. ' WHERE hash IS NOT NULL');
	collect($t);
}

# Runs clients that register, read and delete the same files while a collector
# runs.  Compares each response with those that were possible at its time.

sub storm {
	my ($name, @repos) = @_;

	my @data = map { mix($_, 200000) } 31 .. 33;
	my @files = map { $t->upload($_, send => 0) } @data;
	my $end = time() + 10;
	my $before = $t->files_in_store();
	my @pids;

	auth($_->[0], $_->[1])
		for map { my $node = $_; map { [ $node, $_ ] } @repos } @nodes;

	for my $n (0 .. 8) {
		my $pid = fork() // die "fork: $!\n";

		if ($pid == 0) {
			open(my $log, '>', "$dir/storm.$n") or die;

			srand($seed * 100 + $n);
			eval { $n == 8 ? sweep($end) : rage($log, $end,
				\@repos, \@data, \@files) };
			print $log "died $@" if $@;
			close($log);
			POSIX::_exit(0);
		}

		push @pids, $pid;
	}

	waitpid($_, 0) for @pids;

	my (@ops, @odd);

	for my $n (0 .. 8) {
		open(my $log, '<', "$dir/storm.$n") or die;

		while (<$log>) {
			my ($op, $at, $start, $stop, $status) = split;

			push @ops, { op => $op, at => $at, start => $start,
				end => $stop, status => $status }
				if defined $status;
			push @odd, $_ if !defined $status
				|| !allowed($op, $status);
		}
	}

	is(join('', splice(@odd, 0, 5)), '', "$name: every response is valid");
	cmp_ok(scalar(@ops), '>', 100, "$name: requests");

	my %told;

	$told{"$_->{op} $_->{status}"}++ for @ops;
	note(join(', ', map { "$_: $told{$_}" } sort keys %told));

	my (%at, @wrong);

	push @{ $at{$_->{at}} }, $_ for @ops;

	# a last read of each file is part of the history, too

	for my $repo (@repos) {
		for my $i (0 .. $#files) {
			my $at = "$repo/$i";
			my $r = $other->get(base($repo) . '/v1/files/'
				. $files[$i]{hash}, auth($other, $repo));
			my $now = time();

			push @{ $at{$at} }, { op => 'get', at => $at,
				start => $now, end => $now + 1,
				status => $r->{status} };
			push @wrong, "$at: bytes" if $r->{status} == 200
				&& $r->{body} ne $data[$i];
		}
	}

	# the store can also read files that belong to repos

	delete @at{grep { m!^/! } keys %at} if $repos[0] eq '' && @repos > 1;

	push @wrong, map { wrong(@{ $at{$_} }) } sort keys %at;
	is(join("\n", splice(@wrong, 0, 5)), '', "$name: what was told held");

	# every file can be read and deleted

	$t->http('DELETE', '/repo/v1/repo', auth($t, $_))
		for grep { $_ ne '' } @repos;

	for my $repo (@repos) {
		my $base = base($repo);

		for my $i (0 .. $#files) {
			my $uri = "$base/v1/files/$files[$i]{hash}";

			is($t->put("$base/v1/files", \$data[$i],
				auth($t, $repo))->{status}, 200,
				"$name: put, $repo $i");
			is($other->get($uri, auth($other, $repo))->{body},
				$data[$i], "$name: readable, $repo $i");
			is($t->http('DELETE', $uri, auth($t, $repo))
				->{status}, 204, "$name: deleted, $repo $i");
		}
	}

	collect($t);
	is($t->sql("SELECT (SELECT count(*) FROM xet.files), (SELECT count(*)"
		. ' FROM xet.file_xorbs), (SELECT count(*) FROM xet.terms),'
		. ' (SELECT count(*) FROM xet.xorbs), (SELECT count(*)'
		. ' FROM xet.repo_files)'), '0|0|0|0|0',
		"$name: no row is left");
	is(scalar($t->files_in_store()), $before, "$name: no copy is left");
}

# An empty repo name stands for the store.

sub base { return $_[0] eq '' ? '/api' : '/repo' }
sub auth { return $_[1] eq '' ? {} : $_[0]->auth('delete', $_[1]) }

sub allowed {
	my ($op, $status) = @_;

	my %allowed = (put => '200|503', shard => '200|503|400u',
		del => '204|404|409|503',
		all => '204|404|503', get => '200|404|503|cut');

	return $status =~ /\A(?:$allowed{$op})\z/;
}

# Runs one client.

sub rage {
	my ($log, $end, $repos, $data, $files) = @_;

	while (time() < $end) {
		my $node = $nodes[rand(2)];
		my $repo = $repos->[rand(@$repos)];
		my $i = int(rand(@$data));
		my $h = auth($node, $repo);
		my $base = base($repo);
		my $dice = rand();
		my $start = time();
		my $uri = "$base/v1/files/$files->[$i]{hash}";
		my ($op, $status);

		if ($dice < 0.2) {
			my $r = $node->put("$base/v1/files", \$data->[$i], $h);

			($op, $status) = ('put', $r->{status});

		} elsif ($dice < 0.45) {
			my $r = $node->post("$base/v1/shards",
				\$files->[$i]{shard}, $h);

			($op, $status) = ('shard', $r->{status});
			$status = '400u' if $status == 400
				&& $r->{body} =~ /unknown_xorb/;

		} elsif ($dice < 0.75) {
			($op, $status) = ('del', $node->http('DELETE', $uri,
				$h)->{status});

		} elsif ($dice < 0.78 && $repo ne '') {
			$status = $node->http('DELETE', "$base/v1/repo",
				$h)->{status};
			print $log "all $repo/$_ $start ", time(), " $status\n"
				for 0 .. $#$data;
			next;

		} else {
			my $r = $node->get($uri, $h);
			my $right = $r->{status} == 200
				? $r->{body} eq $data->[$i] : 1;

			($op, $status) = ('get', $r->{status});

			$status = $r->{body} eq substr($data->[$i], 0,
				length($r->{body})) ? 'cut' : 'wrong'
				if !$right;
		}

		print $log "$op $repo/$i $start ", time(), " $status\n";
	}
}

# Runs the collector as often as possible, without a grace period.

sub sweep {
	my ($end) = @_;

	while (time() < $end) {
		rand() < 0.3 ? collect($t) : collect_rows($t);
		select(undef, undef, undef, 0.1);
	}
}

# Returns the impossible responses for one file: reads and deletes that find a
# file which can't exist, or miss a file which must exist.  A 503 does not tell
# whether the operation took effect.

sub wrong {
	my (@ops) = @_;

	my @adds = grep { $_->{op} =~ /put|shard/ && $_->{status} =~ /200|503/ }
		@ops;
	my @dels = grep { $_->{op} =~ /del|all/ && $_->{status} =~ /204|503/ }
		@ops;
	my @wrong;

	for my $r (@ops) {
		my $yes = $r->{op} eq 'get' && $r->{status} =~ /200|cut/
			|| $r->{op} eq 'del' && $r->{status} == 204;
		my $no = $r->{op} =~ /get|del/ && $r->{status} eq '404';

		next unless $yes || $no;

		my ($for, $against) = $no ? (\@adds, \@dels) : (\@dels, \@adds);

		# the last successful operation that ended before this request,
		# if no operation with the opposite effect may have taken effect
		# since

		my ($last) = sort { $b->{start} <=> $a->{start} }
			grep { $_->{status} =~ /200|204/ && $_ != $r
				&& $_->{end} < $r->{start} } @$for;

		next unless $last;
		next if grep { $_ != $r && $_->{end} >= $last->{start}
			&& $_->{start} <= $r->{end} } @$against;

		push @wrong, "$r->{op} $r->{at} $r->{status} at $r->{start},"
			. " after $last->{op} at $last->{start}";
	}

	return @wrong;
}

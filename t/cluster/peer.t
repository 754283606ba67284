#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Damage is healed from a peer node over HTTP: only the exact xorb is accepted,
# whatever the peer sends.  A peer that does not respond delays neither readers
# nor other background jobs, and the next peer is tried.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Files;
use Test::Xet::Process qw/ rss slurp spew /;

use Compress::Zlib ();
use IO::Select;
use IO::Socket::INET;
use Socket qw/ IPPROTO_TCP SOL_SOCKET TCP_MAXSEG /;
use Time::HiRes qw/ sleep time /;

Test::Xet->folder('files that peers heal');

# --------------------------------------------------------------------------
# three servers: the peer, the node with the files, and a peer with false
# responses

my $peer = Test::Xet->new(log => 'info',
	http => 'xet_token_key %%DIR%%/token.key;'
		. ' log_format connections "$connection $request";'
		. ' access_log %%DIR%%/connections.log connections;'
		. ' server { listen 127.0.0.1:%%PORT_8444%% ssl;'
		. ' ssl_certificate %%DIR%%/other.pem;'
		. ' ssl_certificate_key %%DIR%%/other.key; }',
	server => <<'EOF',
        listen 127.0.0.1:%%PORT_8443%% ssl;
        ssl_certificate %%DIR%%/cert.pem;
        ssl_certificate_key %%DIR%%/cert.key;

        location /closed/api/ {
            xet_api;
            xet_api_base /closed/api;
            xet_auth token;
            xet_access store;
        }

        location /repo/api/ {
            xet_api;
            xet_api_base /repo/api;
            xet_auth token;
            xet_access repo;
        }

        location /peer/api/ {
            allow 127.0.0.1;
            deny all;

            xet_api;
            xet_api_base /peer/api;
            xet_auth off;
            xet_access store;

            limit_except GET {
                deny all;
            }
        }

        location ~ ^/token/(?<scope>read|write)$ {
            xet_token;
            xet_token_scope $scope;
            xet_token_repo a/a;
        }
EOF
);

my $dir = $peer->dir();

$peer->token_key();

for (
	[ cert => '/CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1' ],
	[ other => "/CN=n\xc3\xa4me -utf8" ]
) {
	my ($name, $subject) = @$_;

	system('openssl req -x509 -newkey rsa:2048 -nodes -days 2'
		. " -keyout $dir/$name.key -out $dir/$name.pem -subj $subject"
		. ' > /dev/null 2>&1') == 0 or die;
}

$peer->run();

my $t = Test::Xet->new(workers => 2, log => 'info', threads => 2,
	main => 'thread_pool one threads=1;');

my $SO_MAX_PACING_RATE = 47;
my $liar = liar();
my $nobody = $t->port(9999);
my $token = $peer->get('/token/read')->json()->{accessToken};

$t->write_file('token', "$token\n");
$t->write_file('bad_token', "not$token");
chmod(0600, map { $t->dir() . "/$_" } qw/ token bad_token /);

$t->allow(qr/xet: xorb \S+ is damaged and treated as not stored/);

# Sets the false response for a xorb.  It is in a file named after the hash,
# with ".1" appended for the peer "/lies/1".  The file contains the bytes to
# send, or "#" and an action.

sub lie {
	my ($name, $what) = @_;

	spew($t->dir() . "/lies/$name", $what);
}

sub asked {
	my ($name) = @_;

	my $text = slurp($t->dir() . "/lies/asked.$name", 1) // '';

	return scalar(() = $text =~ /^GET /mg);
}

sub liar {
	my $lies = $t->dir() . '/lies';
	mkdir($lies) or die;

	my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1',
		LocalPort => $t->port(9000), Listen => 16, ReuseAddr => 1)
		or die "no liar: $!\n";

	setsockopt($socket, IPPROTO_TCP, TCP_MAXSEG, 88) or die "no liar: $!\n";

	my $pid = fork() // die;

	return $pid if $pid;

	$SIG{CHLD} = 'IGNORE';
	$SIG{PIPE} = 'IGNORE';
	$SIG{TERM} = $SIG{INT} = 'DEFAULT';

	while (1) {
		my $client = $socket->accept() or next;

		next if fork();

		eval { answer($client, $lies) };
		POSIX::_exit(0);
	}
}

sub answer {
	my ($client, $lies) = @_;

	my $head = '';

	sysread($client, $head, 4096, length($head)) or return
		while $head !~ /\r\n\r\n/;

	my ($at, $hash) = $head =~
		m!^GET /lies(\S*)/v1/xorbs/default/(\w{64}) !;

	die $head if !defined($hash);

	my $name = $hash . $at =~ tr!/!.!r;
	my $what = -e "$lies/$name" ? slurp("$lies/$name") : none();

	open(my $asked, '>>', "$lies/asked.$name") or die;
	print $asked $head;
	close($asked);

	my ($bytes, $then) = $what =~
		/^(.*?)(?:#(stall|endless|trickle|drip|trailers|continue))?$/s;

	drip($client) if ($then // '') eq 'drip';

	syswrite($client, $bytes);

	my $some = "\0" x 65536;
	my $line = 'A: ' . ('x' x 3900) . "\r\n";
	my $continue = "HTTP/1.1 100 Continue\r\n$line\r\n";

	while ($then) {

		if ($then eq 'endless') {
			syswrite($client, $some) or return;

		} elsif ($then eq 'trailers') {
			syswrite($client, $line x 16) or return;

		} elsif ($then eq 'continue') {
			syswrite($client, $continue x 16) or return;

		} elsif ($then eq 'trickle') {
			syswrite($client, 'x') or return;
			sleep(0.05);

		} else {
			sleep(0.2);
			return if IO::Select->new($client)->can_read(0);
		}
	}
}

# Sends 40 KB a second in small segments, paced by the kernel, so that a reader
# that waits some milliseconds for more bytes gets some.

sub drip {
	my ($client) = @_;

	setsockopt($client, SOL_SOCKET, $SO_MAX_PACING_RATE, pack('L', 40_000))
		or die "no drip: $!";
}

sub none {
	return "HTTP/1.1 404 No\r\nContent-Type: application/json\r\n"
		. "Content-Length: 0\r\n\r\n";
}

END {
	kill('KILL', $liar) if $liar;
}

# --------------------------------------------------------------------------

my $seed = 700;

sub fresh {
	my ($size, %o) = @_;

	my $data = mix(++$seed, $size);
	my $f = { data => $data };

	for my $node ($t, $o{peer} // 1 ? $peer : ()) {
		my $x = send_xorb($node, $data, scheme => 'none',
			sizes => [ 65536 ]);

		next if $node != $t;

		$f->{x} = $x;
		$f->{file} = register_file($t, [ [ $x ] ]);
	}

	return $f;
}

sub path { return $t->xorb_file($_[0]{x}{hash}) }

sub damaged {
	return $t->sql('SELECT count(*) FROM xet.xorbs'
		. ' WHERE damaged_at IS NOT NULL');
}

# Marks the xorbs as damaged, as a reader would, and makes their next heal due
# now.

sub mark {
	$t->sql('UPDATE xet.xorbs SET damaged_at = now()'
		. " WHERE encode(hash, 'hex') IN ("
		. join(', ', map { "'" . row_hash($_) . "'" } @_) . ')');
	again();
}

sub row_hash {
	return join('', map { unpack('H*', reverse(pack('H*', $_))) }
		unpack('(a16)4', $_[0]{x}{hash}));
}

sub again {
	$t->sql('DELETE FROM xet.heals');
	$t->sql("SELECT xet.job_now('heal')");
}

sub damage {
	my ($f, $how) = @_;

	my $path = path($f);

	return unlink($path) || die if $how eq 'remove';

	my $bytes = slurp($path);

	$bytes = substr($bytes, 0, -100) if $how eq 'cut';
	substr($bytes, 5000, 1) ^= "\1" if $how eq 'flip';
	spew($path, $bytes);
}

sub whole {
	my ($f, $name) = @_;

	my $r = $t->get("/api/v1/files/$f->{file}{hash}");

	ok($r->{status} == 200 && $r->{body} eq $f->{data}, $name);
}

sub peers {
	my (%o) = @_;

	$t->write_conf(undef, directives => {
		xet_scrub => 'on rate=' . ($o{rate} // '1g') . ' interval=366d',
		xet_read_thread_pool => 'one',
		xet_store_peer => join('; xet_store_peer ', @{ $o{peers} })
	});

	return $t->nginx()->pid() ? $t->reload() : $t->run();
}

my $good = $peer->url('/api');
my $lies = $t->url('/lies', 9000);

# --------------------------------------------------------------------------
# heals over HTTP: small xorbs, a very large one, and one in another encoding

peers(peers => [ "http://127.0.0.1:$nobody/", "$good/" ]);

my @small = map { fresh(100_000) } 1 .. 4;
my $large = fresh(60 * 1024 * 1024);

damage($small[0], 'flip');
damage($small[1], 'cut');
damage($small[2], 'remove');
damage($large, 'remove');

{
	# the peer's copy is compressed, and has another size

	my $other = make_xorb("\1\2" x 200_000, scheme => 'lz4',
		sizes => [ 65536 ]);
	my $same = make_xorb("\1\2" x 200_000, scheme => 'none',
		sizes => [ 65536 ]);

	is($other->{hash}, $same->{hash}, 'a xorb in two encodings');

	$peer->post("/api/v1/xorbs/default/$other->{hash}", \$other->{bytes});

	my $f = { data => "\1\2" x 200_000, x => send_xorb($t,
		"\1\2" x 200_000, scheme => 'none', sizes => [ 65536 ]) };

	$f->{file} = register_file($t, [ [ $f->{x} ] ]);
	push @small, $f;

	damage($f, 'remove');
}

my $start = $t->log_size();

mark(@small, $large);

ok(wait_for(90, sub { damaged() == 0 }), 'all is healed')
	or diag($t->log($start));

whole($small[$_], "small $_ is whole") for 0 .. $#small;
whole($large, 'the large one is whole');

like($t->log($start), qr!\Q$small[3]{x}{hash}\E\S* is intact and available!,
	'an intact xorb is not fetched');
like($t->log($start), qr!$_->{x}{hash} was repaired from "\Q$good\E/v1/xorbs!,
	'told') for @small[0, 1, 2, 4], $large;
like($t->log($start),
	qr/request to peer "http\S+:$nobody\S+" failed:.*connect/i,
	'a missing peer is logged, the next is used');

# --------------------------------------------------------------------------
# false responses: each one is reported, none is accepted, and the good peer is
# tried next

my $ok = "HTTP/1.1 200 OK\r\n";

# after one of these false responses the peer is skipped for a while; other
# false responses follow below

my @down = (
	[ 'cut short of its length', qr/request to peer/, sub {
		my $bytes = $_[0]{x}{bytes};
		return $ok . length_of($bytes) . substr($bytes, 0, -1);
	} ],
	[ 'an error with a good body', qr/peer responded with 500 to/, sub {
		my $bytes = $_[0]{x}{bytes};
		return "HTTP/1.1 500 No\r\n" . length_of($bytes) . $bytes;
	} ],
	[ 'not HTTP', qr/request to peer/, sub { return $_[0]{x}{bytes} } ],
	[ 'a head and no more', qr/request to peer .* bytes in 1000 ms/, sub {
		return $ok . length_of($_[0]{x}{bytes}) . '#stall';
	} ],
	[ 'half', qr/request to peer .* bytes in 1000 ms/, sub {
		my $bytes = $_[0]{x}{bytes};
		return $ok . length_of($bytes) . substr($bytes, 0, 50_000)
			. '#stall';
	} ],
	[ 'drops', qr/request to peer .* bytes in 1000 ms/, sub {
		return "$ok\r\n" . substr($_[0]{x}{bytes}, 0, 100) . '#trickle';
	} ],
	[ 'nothing at all', qr/request to peer .* bytes in 1000 ms/, sub {
		return '#stall';
	} ],
	[ 'a head without an end', qr/request to peer/, sub {
		return "${ok}A: " . ('x' x 900_000) . '#endless';
	} ],
	[ 'heads without an end', qr/peer .* failed: its head is too long/,
		sub { return '#continue' } ],
	[ 'trailers without an end', qr/peer .* failed: its head is too long/,
		sub {
			return "${ok}Transfer-Encoding: chunked\r\n\r\n1\r\n"
				. substr($_[0]{x}{bytes}, 0, 1)
				. "\r\n0\r\n#trailers";
	} ],
	# libcurl 8 itself refuses this, with its own message

	[ 'compressed on the way', qr/to peer .*Transfer-Encoding/,
		sub {
			return "${ok}transfer-encoding:  GZIP \r\n\r\n"
				. Compress::Zlib::memGzip($_[0]{x}{bytes});
	} ],
	[ 'compressed and chunked', qr/to peer .*Transfer-Encoding/,
		sub {
			my $bytes = Compress::Zlib::memGzip($_[0]{x}{bytes});
			return "${ok}Transfer-Encoding: gzip, chunked\r\n\r\n"
				. sprintf("%x\r\n", length($bytes))
				. "$bytes\r\n0\r\n\r\n";
	} ],
	[ 'dense drops', qr/request to peer .* bytes in 1000 ms/, sub {
		my $bytes = $_[0]{x}{bytes};
		return $ok . length_of($bytes) . "$bytes#drip";
	} ]
);

my @lies = (@down,
	[ 'flipped', qr/of a peer was rejected/, sub {
		my $bytes = $_[0]{x}{bytes};
		substr($bytes, 5000, 1) ^= "\1";
		return $ok . length_of($bytes) . $bytes;
	} ],
	[ 'another xorb', qr/of a peer was rejected/, sub {
		my $bytes = $small[0]{x}{bytes};
		return $ok . length_of($bytes) . $bytes;
	} ],
	[ 'cut without a length', qr/of a peer was rejected/, sub {
		return "$ok\r\n" . substr($_[0]{x}{bytes}, 0, -1);
	} ],
	[ 'more behind it', qr/of a peer was rejected/, sub {
		my $bytes = $_[0]{x}{bytes} . 'more';
		return $ok . length_of($bytes) . $bytes;
	} ],
	[ 'nothing', qr/of a peer was rejected/, sub {
		return $ok . length_of('');
	} ],
	[ 'without an end', qr/of a peer was rejected/, sub {
		return "$ok\r\n$_[0]{x}{bytes}#endless";
	} ],
	[ 'a redirect', qr/peer responded with 302 to/, sub {
		return "HTTP/1.1 302 Found\r\nLocation: $good/v1/xorbs/default/"
			. "$_[0]{x}{hash}\r\n" . length_of('');
	} ],
	[ 'a part', qr/peer responded with 206 to/, sub {
		my $bytes = $_[0]{x}{bytes};
		return "HTTP/1.1 206 Part\r\n" . length_of($bytes) . $bytes;
	} ],
	[ 'no API', qr/404 of a peer is not that of an API/, sub {
		return "HTTP/1.1 404 No\r\nContent-Type: text/html\r\n"
			. length_of('no') . 'no';
	} ]
);

sub length_of { return 'Content-Length: ' . length($_[0]) . "\r\n\r\n" }

peers(peers => [ (map { "$lies/$_/ timeout="
	. ($down[$_][0] =~ /without an end/ ? '10s' : '1s') } 0 .. $#down),
	"$lies/$#lies timeout=1s", $good ]);

my @lied = map { fresh($_->[0] =~ /dense/ ? 400_000 : 100_000) } @lies;
my @liar = map { $_ > $#down ? $#lies : $_ } 0 .. $#lies;
my $at = $t->log_size();

for my $i (0 .. $#lies) {
	lie("$lied[$i]{x}{hash}.$liar[$i]", $lies[$i][2]->($lied[$i]));
	damage($lied[$i], 'remove');
}

my ($before, $most) = (largest()) x 2;

sub largest {
	my ($rss) = sort { $b <=> $a } map { rss($_) } $t->worker_pids();

	return $rss;
}

mark(@lied);

ok(wait_for(120, sub {
	my $rss = largest();
	$most = $rss if $rss > $most;

	return damaged() == 0;
}), 'lies: everything is healed') or diag($t->log($at));

cmp_ok($most - $before, '<', 64 * 1024, 'lies: no memory is eaten');

for my $i (0 .. $#lies) {
	my ($name, $log) = @{ $lies[$i] };

	my $hash = $lied[$i]{x}{hash};
	my @lines = grep { /\Q$hash\E/ } split(/\n/, $t->log($at));

	whole($lied[$i], "$name: GET");
	is(scalar(grep { $_ =~ $log && m!/lies/$liar[$i]/! } @lines), 1,
		"$name: logged")
		or diag(map { "$_\n" } @lines);
	is(scalar(grep { /was repaired from "\Q$good\E/ } @lines), 1,
		"$name: by whom");

	unlike(slurp($t->dir() . "/lies/asked.$hash.$liar[$i]"),
		qr/Authorization|Cookie|Accept-Encoding/i,
		"$name: asked without a token");
}

# a peer that is down or refuses connections costs one timeout, not one per xorb

{
	my @f = map { fresh(100_000) } 1 .. 4;
	my %lie = (stall => '#stall', cut => "${ok}Content-Length: 9\r\n\r\n",
		map { $_ => "HTTP/1.1 $_ No\r\n" . length_of('') }
		401, 403, 429, 500, 503, 400);

	for my $f (@f) {
		lie("$f->{x}{hash}.$_", $lie{$_}) for keys %lie;
		damage($f, 'remove');
	}

	peers(peers => [ (map { "$lies/$_ timeout=1s" } sort keys %lie),
		"$lies/has_not", $good ]);
	mark(@f);

	ok(wait_for(60, sub { damaged() == 0 }), 'down: the next peer heals');

	for my $lie (sort(keys %lie), 'has_not') {
		my $n = 0;

		$n += asked("$_->{x}{hash}.$lie") for @f;
		is($n, $lie =~ /^(?:400|has_not)$/ ? 4 : 1,
			"down: $lie: requested");
	}

	like($t->log($at), qr!\[info\].*does not have "\Q$lies\E/has_not/v1!,
		'down: an API that has not the xorb');
}

# one connection to the peer serves all fetches of a heal

{
	my @f = map { fresh(100_000) } 1 .. 4;

	damage($_, 'remove') for @f;

	peers(peers => [ $t->url('/api'), $peer->url('/peer/api') ]);
	mark(@f);

	ok(wait_for(60, sub { damaged() == 0 }), 'connection: healed');

	my %by = map { $_ => 1 } slurp($peer->dir() . '/connections.log')
		=~ m!^(\d+) GET /peer/api/v1/xorbs!mg;

	is(scalar(keys %by), 1, 'connection: one for all xorbs');
}

# a xorb that no peer has is reported once, and its next heal is postponed

{
	my $f = fresh(100_000, peer => 0);
	my $at = $t->log_size();

	damage($f, 'remove');
	mark($f);

	ok(wait_for(30, sub {
		$t->log($at) =~ /\Q$f->{x}{hash}\E\S* is damaged and could/
	}), 'no peer has it: logged');

	unlike($t->log($at), qr/peer (?:answers|fails)/,
		'no peer has it: 404 is no error');

	$t->post("/api/v1/xorbs/default/$f->{x}{hash}", \$f->{x}{bytes});
	is(damaged(), 0, 'no peer has it: an upload heals');
}

# --------------------------------------------------------------------------
# a peer that sends nothing delays no other work, although there is only one
# thread

peers(peers => [ "$lies timeout=1h", $good ]);

{
	my $f = fresh(100_000);

	lie($f->{x}{hash}, $ok . length_of($f->{x}{bytes}) . '#stall');
	damage($f, 'remove');
	mark($f);

	ok(wait_for(30, sub {
		-e $t->dir() . "/lies/asked.$f->{x}{hash}"
	}), 'a hanging peer is used');

	my $began = time();

	for (1 .. 50) {
		my $r = $t->get("/api/v1/files/$small[0]{file}{hash}");
		die $r->{status} if $r->{status} != 200;
	}

	cmp_ok(time() - $began, '<', 10, '50 readers meanwhile');

	# a reload, or the death of the workers, ends the fetch

	my $at = $t->log_size();
	my @old = $t->worker_pids();

	$t->reload();

	ok(wait_for(20, sub {
		my %is = map { $_ => 1 } $t->worker_pids();
		!grep { $is{$_} } @old
	}), 'the old workers exit');

	again();
	unlink($t->dir() . "/lies/asked.$f->{x}{hash}");

	ok(wait_for(60, sub {
		-e $t->dir() . "/lies/asked.$f->{x}{hash}"
	}), 'the peer is used again');

	lie($f->{x}{hash}, none());

	$t->kill_worker('KILL', $_) for $t->worker_pids();
	again();

	ok(wait_for(90, sub { damaged() == 0 }),
		'another worker heals afterwards');
	whole($f, 'GET after that');
}

# --------------------------------------------------------------------------
# tokens and certificates

my $closed = $peer->url('/closed/api');
my $tls = 'https://127.0.0.1:' . $peer->port(8443) . '/closed/api';
my $cert = $peer->dir() . '/cert.pem';

for (
	[ "$closed", 'no token', qr/peer responded with 401 to/ ],
	[ "$closed token=bad_token", 'a bad token',
		qr/peer responded with 401 to/ ],
	[ "$tls token=token", 'a certificate of nobody',
		qr/request to peer "https.*certificate/ ],
	[ 'https://127.0.0.1:' . $peer->port(8444)
		. " trusted_certificate=$dir/other.pem", 'a name of its own',
		qr/request to peer "https.*'n\?\?me'/ ],
	[ $peer->url('/repo/api') . ' token=token', 'a peer with repos',
		qr/peer responded with 403 to/ ],
	[ $peer->url('/peer/api'), 'a location for peers', undef ],
	[ "$closed token=token", 'a token', undef ],
	[ "$tls token=token trusted_certificate=$cert", 'TLS', undef ]
) {
	my ($uri, $name, $log) = @$_;

	my $f = fresh(100_000);
	my $at = $t->log_size();

	damage($f, 'remove');
	peers(peers => [ $uri ]);
	mark($f);

	if ($log) {
		ok(wait_for(60, sub { $t->log($at) =~ /not be fetched from/ }),
			"$name: not healed");
		like($t->log($at), $log, "$name: logged");

		$t->post("/api/v1/xorbs/default/$f->{x}{hash}",
			\$f->{x}{bytes});

	} else {
		ok(wait_for(60, sub { damaged() == 0 }), "$name: healed")
			or diag($t->log($at));
	}

	whole($f, "$name: GET");
}

for my $name (qw/ error.log access.log /) {
	my @with = grep { index(slurp($_->dir() . "/$name"), $token) >= 0 }
		$t, $peer;

	is(scalar(@with), 0, "no token in $name");
}

# --------------------------------------------------------------------------

my $r = xet(undef, { env => { XET_POSTGRES => $t->conninfo() } },
	'verify', '--store', $t->store(), '--json');

is_deeply([ $r->{code}, $r->{json}[-1]{faults} ], [ 0, 0 ],
	'rows describe their files') or diag($r->{out}, $r->{err});

$t->done();

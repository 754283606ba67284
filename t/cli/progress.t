#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The progress bar in a terminal: one for all files of a folder, or for all
# copies of a store; not wider than the terminal, with the reason of a retry;
# none in a pipe or with --quiet.  The result of a folder: one line, with
# --verbose also a line for each file.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ build_dir slurp spew /;
use Test::Xet::Token;

use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 300,
	http => Test::Xet::Token::token_directive(), locations => <<'EOC');
location / {
            xet_hub on;
            xet_auth off;
            xet_hub_owners *;
            xet_api_base /cas;
            client_max_body_size 200m;
        }

        location /plain/ {
            xet_api;
            xet_api_base /plain;
            xet_auth off;
            client_max_body_size 80m;

            if (-f %%DIR%%/busy) {
                return 503;
            }
        }

        %%CAS%%
EOC

$t->token_key();
$t->run();

my $dir = tempdir(CLEANUP => 1);

make_path("$dir/in/sub");
spew("$dir/in/sub/$_", "file $_\n" x 50) for 1 .. 400;
spew("$dir/in/large", mix(7, 4_000_000));
make_path("$dir/one");
spew("$dir/one/new", mix(9, 100_000));

my $size = -s "$dir/in/large";
$size += -s "$dir/in/sub/$_" for 1 .. 400;

my $total = sprintf('%.1f MB', $size / 1e6);
my $time = qr/\d+\.\d s/;

# --------------------------------------------------------------------------
# the result of a folder, in a pipe

my $r = cli('put', '-r', 'in');

is($r->{code}, 0, 'put');
is($r->{err}, '', 'put: no bar in a pipe');
like($r->{out}, qr/\A401 files, \Q$total\E, \S+ [kM]?B new, $time\n\z/,
	'put: one line');

$r = cli('put', '-r', '-v', 'in');
is(scalar(() = $r->{out} =~ /^[0-9a-f]{64} +\d+ sub\/\d+$/mg), 400,
	'put -v: a line for each file');
like($r->{out}, qr/^401 files, \Q$total\E, 0 B new, $time\n\z/m,
	'put -v: then the sum');

$r = cli('put', '-r', '--json', '-v', 'in');
is(scalar(@{ $r->{json} }), 401, 'put --json: an object for each file');
is(scalar(() = $r->{out} =~ /\n/g), 401, 'put --json: and no other line');
spew("$dir/manifest", $r->{out});

like(cli('get', '-r', '-o', 'out', 'manifest')->{out},
	qr/\A401 files, \Q$total\E, \S+ [kM]?B received, $time\n\z/,
	'get: one line');
like(cli('get', '-r', '-v', '-o', 'out', 'manifest')->{out},
	qr/^[0-9a-f]{64} +\d+ large\n.*401 files, .*, 0 B received, $time\n/ms,
	'get -v: a line for each file');

like(cli('put', '-r', 'in', 'me/model')->{out},
	qr/\Ame\/model: 401 files, \Q$total\E, \S+ [kM]?B new, $time, 0 unch/,
	'put to a Hub: one line');
like(cli('put', '-r', 'in', 'me/model')->{out},
	qr/\Ame\/model: 0 files, 0 B, 0 B new, $time, 401 unchanged\n\z/,
	'put to a Hub: again');
like(cli('verify', 'me/model')->{out},
	qr/\Ame\/model: 401 files, \Q$total\E, \Q$total\E ok, $time\n\z/,
	'verify of a repo: one line');

# --------------------------------------------------------------------------
# the bar

SKIP: {
	skip 'no script(1)', 1 if system('script --version > /dev/null 2>&1');

	for my $case ([ 'a manifest', 'get', '-r', '-o', 'new', 'manifest' ],
		[ 'a repo', 'get', '-o', 'new', 'me/model' ],
		[ 'a put', 'put', '-r', 'in' ], [ 'a commit', 'put', '-r', 'in',
		'me/other' ], [ 'a check', 'verify', 'me/model' ])
	{
		my ($name, @args) = @$case;
		my ($lines, $rest) = terminal(100, {}, @args);

		system("rm -rf $dir/new");

		cmp_ok(scalar(@$lines), '>', 0, "$name: a bar");
		is(scalar(grep { !m!^(?:\S+  )?\d+/401 files  .*\d+%  !
			} @$lines), 0, "$name: with all files")
			or diag(join("\n", @$lines));
		is(scalar(grep { length($_) > 99 } @$lines), 0,
			"$name: within the terminal");
		like($rest, qr/\A(?:me\/\w+: )?[\d,]+ files, [^\n]+\n\z/,
			"$name: only the result stays");
	}

	for my $columns (79, 40, 20, 10, 5, 2) {
		my ($lines) = terminal($columns, {}, 'verify', 'me/model');

		is(scalar(grep { length($_) >= $columns } @$lines), 0,
			"$columns columns: the bar is not wider");
	}

	my ($lines) = terminal(100, { COLUMNS => 30 }, 'verify', 'me/model');

	is(scalar(grep { length($_) >= 30 } @$lines), 0, 'COLUMNS');

	for my $case ([ {}, '-q' ], [ { TERM => 'dumb' } ]) {
		my ($env, @more) = @$case;

		($lines) = terminal(100, $env, 'verify', @more, 'me/model');
		is_deeply($lines, [], join(' ', 'no bar:', %$env, @more));
	}

	# copies

	for my $i (1 .. 4) {
		spew("$dir/copy", mix(20 + $i, 500_000));
		cli('put', 'copy');
	}

	my $n = $t->sql('SELECT count(*) FROM xet.xorbs');
	my $backup = "$dir/backup";
	my $empty = $t->conninfo() =~ s/dbname=xet/dbname=empty/r;

	$t->sql('CREATE DATABASE empty OWNER xet');

	for my $case ([ 'a backup', "/$n", 'backup', '--rate', '4m', $backup ],
		[ 'a check of a backup', '', 'backup', '--verify', $backup ],
		[ 'a restore', "/$n", 'restore', '--rate', '4m', '--sql',
			build_dir() . '/sql', '--store', "$dir/restored",
			'--postgres', $empty, $backup ],
		[ 'a rebuild', '', 'rebuild' ],
		[ 'a copy of a store', "/$n", 'store', 'copy', '--rate', '4m',
			'--from', $t->store(), '--to', "$dir/store" ])
	{
		my ($name, $all, @args) = @$case;
		my ($lines, $rest) = terminal(100, {}, @args);
		my $total = $all ? qr/  \[[#.]+\]  +\d+%  / : qr/  /;
		my $line = qr/^(?:\S+  )?\d+\Q$all\E copies$total.* .?B\/s/;

		cmp_ok(scalar(@$lines), '>', 0, "$name: a bar") or diag($rest);
		is_deeply([ grep { !/$line/ } @$lines ], [],
			"$name: with all copies");
		unlike($rest, qr/copies  /, "$name: only the result stays");
	}

	# a retry

	spew($t->dir() . '/busy', '');
	($lines, my $rest) = terminal(100, {}, 'put', '-r', '--retries', 2,
		'one');
	unlink($t->dir() . '/busy');

	for my $n (1, 2) {
		isnt(scalar(grep { /  retrying \(503\), $n of 2$/ } @$lines), 0,
			"a retry: $n of 2");
	}

	like($rest, qr/\Axet: server: \S+: 503\n\z/,
		'a retry: only the error stays');

	($lines) = terminal(100, {}, 'put', '--endpoint',
		'http://127.0.0.1:1/api', '--retries', 1, 'in/large');
	isnt(scalar(grep { /  retrying \(Couldn't connect to server\), 1 of 1$/
		} @$lines), 0, 'a retry: without a server') or diag("@$lines");

	# a server that recovers

	spew($t->dir() . '/busy', '');

	my $pid = fork() // die;

	if ($pid == 0) {
		sleep(2);
		unlink($t->dir() . '/busy');
		require POSIX;
		POSIX::_exit(0);
	}

	spew("$dir/more", mix(8, 1_000_000));
	($lines, $rest) = terminal(100, {}, 'put', 'more');
	waitpid($pid, 0);

	isnt(scalar(grep { /retrying/ } @$lines), 0,
		'a server recovers: a retry');
	unlike($lines->[-1], qr/retrying/, 'a server recovers: it is removed');
	like($rest, qr/\Amore\n/, 'a server recovers: the result');
}

$t->done();

sub options {
	return { dir => $dir, endpoint => $t->url('/plain'),
		env => { HF_ENDPOINT => $t->url('') } };
}

sub cli { return xet($t, options(), @_) }

# Runs xet in a terminal with this number of columns.  Returns the lines that
# the bar has drawn, and the text that stays on the terminal.

sub terminal {
	my ($columns, $env, @args) = @_;

	my %env = (TERM => 'xterm', HF_ENDPOINT => $t->url(''), XET_TOKEN => '',
		XET_ENDPOINT => $t->url('/plain'), XET_STORE => $t->store(),
		XET_POSTGRES => $t->conninfo(),
		XDG_CACHE_HOME => "$dir/cache",
		%$env);

	local @ENV{keys %env} = values %env;
	delete local $ENV{COLUMNS} if !$env{COLUMNS};

	my $run = join(' ', map { "'$_'" } Test::Xet::Cli::binary(), @args);

	spew("$dir/run", "cd $dir\nstty cols $columns\nexec $run\n");
	system("script -qec 'sh $dir/run' /dev/null < /dev/null > $dir/log");

	my $log = slurp("$dir/log") =~ s/\r\n/\n/gr;
	my @lines = $log =~ /\r\e\[K([^\r\n\e]+)(?=\r)/g;

	return (\@lines, $log =~ s/\r\e\[K[^\r\n\e]*(?=\r)//gr
		=~ s/\r\e\[K//gr);
}

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Branches that start from each other share their rows.  Random commits and
# branches of any depth are compared with a model in this test, which stores all
# files of each commit: each branch, tag and commit has exactly those files, its
# history, the history of each path, and the differences from any other commit.
#
#     SEED=1 STEPS=100 prove t/hub/forks.t

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Soak::Random;
use Test::Xet::Table;
use Test::Xet::Token;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;
use Time::HiRes qw/ time /;

my $seed = $ENV{SEED} || 24;
my $steps = $ENV{STEPS} || 140;
my $until = time() + ($ENV{SECONDS} || 45);

diag("seed $seed");

my $t = Test::Xet->new(Test::Xet::Table::hub('xet_auth off;'), workers => 1);

$t->token_key();
$t->run();

my $json = JSON::PP->new()->canonical();
my $base = '/api/models/me/m';

# contents of files: empty ones, and some with data

my @data = ('', map { "content $_\n" x $_ } 1 .. 6);
my @paths = ('a', 'b', 'x y', 'd', 'd/a', 'd/b', 'd/e', 'd/e/a', 'd/e/f/a',
	'd/e/f/b', 'g/h/i/a', 'g/h', 'g/z', 'd.a', 'd0',
	map { sprintf('w/%02d', $_) } 1 .. 15);

# Commits by id: { files => { path => index of data }, made => { path => id },
# parent, n, title }.  Heads and tags by name.

my (%commits, %heads, %tags);
my $last = 'main';       # the newest branch

is($t->post('/api/repos/create', $json->encode({ name => 'm' }))->{status},
	200, 'a repo');

my $first = $t->get("$base/revision/main")->json()->{sha};

$commits{$first} = { files => {}, made => {}, n => 1,
	title => 'initial commit' };
$heads{main} = $first;

my ($step, $errors, %did) = (0, '');

while ($step < $steps && time() < $until) {
	my $rng = Test::Xet::Soak::Random->new($seed, ++$step);
	my $act = $step < 4 ? 'commit' : $rng->weighted({ commit => 12,
		branch => 5, tag => 1, gone => 2 });

	$errors = '';
	$did{$act}++;

	my $rev = __PACKAGE__->can("act_$act")->($rng);

	check($rng, $rev);
	check($rng, any($rng)) for 1 .. 2;

	ok(!$errors, "step $step: $act") or diag("seed $seed: $errors");
	last if $errors;
}

cmp_ok($step, '>=', 40, "$step steps");

# at the end: all branches and tags

$errors = '';
check(Test::Xet::Soak::Random->new($seed, 0), $_) for sort(keys %heads),
	map { "refs/tags/$_" } sort keys %tags;
is($errors, '', 'all branches and tags');

my ($deep, $lines) = split(/\|/, $t->sql('SELECT max(cardinality(bases)),'
	. ' count(*) FROM xet.hub_lines'));

cmp_ok($deep, '>=', 3, "branches of branches: $deep, lines: $lines");
is($t->sql('SELECT count(*) FROM xet.hub_lines WHERE line = 0'
	. " AND branch = 'heads/main'"), 1, 'main has its line');
is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
	'the counts are exact');
like(join(' ', %did), qr/commit/, join(' ', map { "$_ $did{$_}" }
	sort keys %did));

$t->done();

# --------------------------------------------------------------------------
# random operations: each returns the revision that it has changed

sub act_commit {
	my ($rng) = @_;

	my $branch = $rng->chance(40) && $heads{$last} ? $last
		: $rng->pick(sort keys %heads);
	my $old = $commits{$heads{$branch}};
	my %files = %{ $old->{files} };
	my $n = $rng->chance(10) ? 15 : 1 + $rng->int(4);
	my (@ops, %told, %seen);

	for (1 .. $n) {
		my ($op, @told) = operation($rng, $old->{files}, \%seen);

		next if !$op;

		push @ops, $op;

		for (@told) {
			my ($path, $data) = @$_;

			$seen{$path} = 1;

			next if defined $data && ($files{$path} // -1) == $data;

			$told{$path} = 1;
			delete $files{$path};
			$files{$path} = $data if defined $data;
		}
	}

	return $branch if !@ops;

	my $r = commit($branch, $step, @ops);
	my $bad = grep { my $f = $_; grep { exists $files{$_} } above($f) }
		keys %files;

	if ($bad) {
		wrong("a file and a folder: $r->{status}")
			if $r->{status} != 400;
		return $branch;
	}

	if ($r->{status} != 200) {
		wrong("commit to $branch: " . $r->summary());
		return $branch;
	}

	my $oid = $r->json()->{commitOid};

	if (!%told) {
		wrong('a commit of nothing') if $oid ne $heads{$branch};
		return $branch;
	}

	my %made = map { $_ => $told{$_} ? $oid : $old->{made}{$_} }
		keys %files;
	my %changed = map { $_ => 1 } map { above($_) } keys %told;

	$made{$_} = $changed{$_} ? $oid : $old->{made}{$_}
		for map { above($_) } keys %files;

	$commits{$oid} = { files => \%files, made => \%made,
		parent => $heads{$branch}, n => $old->{n} + 1,
		title => "step $step" };
	$heads{$branch} = $oid;

	return $branch;
}

# Returns a random valid operation for a commit, and [ path, data ] for each
# file that it changes.

sub operation {
	my ($rng, $files, $seen) = @_;

	my @there = grep { !$seen->{$_} } sort keys %$files;
	my $what = $rng->weighted({ put => 8, gone => 4, folder => 2,
		copy => 3 });
	my $path = $rng->pick(@paths);

	if ($what eq 'gone' && @there) {
		my $gone = $rng->pick(@there);

		return { key => 'deletedFile', value => { path => $gone } },
			[ $gone ];
	}

	if ($what eq 'folder') {
		my %folders = map { $_ => 1 } map { above($_) } @there;

		return () if !%folders;

		my $folder = $rng->pick(sort keys %folders);
		my @below = grep { m!^\Q$folder\E/! } sort keys %$files;

		return () if grep { m!^\Q$folder\E/! } keys %$seen;

		# later operations of this commit do not use paths below the
		# folder

		$seen->{$_} = 1 for grep { m!^\Q$folder\E/! } @paths;

		return { key => 'deletedFolder', value => { path => $folder } },
			map { [ $_ ] } @below;
	}

	return () if $seen->{$path};

	if ($what eq 'copy') {
		my $rev = any($rng);
		my $from = $commits{oid_of($rev)}{files};

		return () if !%$from;

		my $source = $rng->pick(sort keys %$from);

		return { key => 'copyFile', value => { path => $path,
			srcPath => $source, srcRevision => $rev } },
			[ $path, $from->{$source} ];
	}

	my $n = $rng->int(scalar @data);

	return { key => 'file', value => { path => $path,
		encoding => 'base64',
		content => encode_base64($data[$n], '') } }, [ $path, $n ];
}

sub act_branch {
	my ($rng) = @_;

	my $name = 'b' . $rng->int(7);
	my $from = $rng->chance(60) ? $last : any($rng);

	$from = 'main' if !oid_of($from) || $from eq $name;

	my $r = $t->post("$base/branch/$name", $json->encode({
		startingPoint => $from }));
	my $want = $heads{$name} ? 409 : 200;

	wrong("branch $name: " . $r->summary()) if $r->{status} != $want;

	$heads{$name} //= oid_of($from);
	$last = $name;

	return $name;
}

sub act_tag {
	my ($rng) = @_;

	my $name = 't' . $rng->int(4);
	my $from = any($rng);

	$from = 'main' if $from eq "refs/tags/$name";

	if ($tags{$name}) {
		my $r = $t->http('DELETE', "$base/tag/$name");

		wrong("no tag $name: " . $r->summary()) if $r->{status} != 200;
		delete $tags{$name};
	}

	my $oid = oid_of($from);
	my $r = $t->post("$base/tag/" . ($from =~ s!/!%2F!gr),
		$json->encode({ tag => $name }));

	wrong("tag $name: " . $r->summary()) if $r->{status} != 200;
	$tags{$name} = $oid;

	return $name;
}

sub act_gone {
	my ($rng) = @_;

	my @names = grep { $_ ne 'main' } sort keys %heads;

	return 'main' if !@names;

	my $name = $rng->pick(@names);
	my $r = $t->http('DELETE', "$base/branch/$name");

	wrong("no branch $name: " . $r->summary()) if $r->{status} != 200;
	delete $heads{$name};

	return 'main';
}

sub commit {
	my ($branch, $n, @ops) = @_;

	my $body = join('', map { $json->encode($_) . "\n" } { key => 'header',
		value => { summary => "step $n" } }, @ops);

	return $t->post("$base/commit/$branch", \$body,
		{ 'Content-Type' => 'application/x-ndjson' });
}

# Returns a branch, a tag, or any commit of the history.

sub any {
	my ($rng) = @_;

	return $rng->pick(map({ ($_, $_) } sort keys %heads),
		map({ "refs/tags/$_" } sort keys %tags),
		map { $rng->pick(sort keys %commits) } 1 .. 5);
}

sub oid_of {
	my ($rev) = @_;

	return $rev =~ m!^refs/tags/(.*)! ? $tags{$1}
		: $heads{$rev} // $tags{$rev}
		// ($commits{$rev} ? $rev : undef);
}

sub above {
	my ($path) = @_;

	my @above;

	push @above, $path while $path =~ s!/[^/]*$!!;

	return @above;
}

sub wrong { $errors .= "$_[0]; " }

# --------------------------------------------------------------------------
# everything that the Hub reports about a revision matches the model

sub check {
	my ($rng, $rev) = @_;

	my $oid = oid_of($rev);
	my $c = $commits{$oid};
	my @all = sort keys %{ $c->{made} };
	my $uri = $rev =~ s!/!%2F!gr;
	my $folder = $rng->pick('', map { above($_) } @paths);
	my @in = grep { (m!^(.*)/! ? $1 : '') eq $folder } @all;
	my $limit = 1 + $rng->int(9);

	same("tree of $rev", join("\n", map { entry($c, $_) } @all),
		tree("$base/tree/$uri?recursive=true&expand=true"
			. "&limit=$limit"));

	if ($folder eq '' || exists $c->{made}{$folder}
		&& !exists $c->{files}{$folder})
	{
		same("folder $folder of $rev", join("\n",
			map { entry($c, $_) } @in), tree("$base/tree/$uri/"
			. "$folder?expand=true&limit=" . (1 + $rng->int(4))));

		my @below = grep { m!^\Q$folder\E/! } @all;

		same("below $folder of $rev", join("\n",
			map { entry($c, $_) } @below), tree("$base/tree/$uri/"
			. "$folder?expand=true&recursive=1&limit=3"))
			if $folder ne '';
	} else {
		my $r = $t->get("$base/tree/$uri/$folder");

		wrong("no folder $folder of $rev: $r->{status}")
			if $r->{status} != 404;
	}

	my %asked = map { $_ => 1 } @paths, map { above($_) } @paths;
	my $r = $t->post("$base/paths-info/$uri", $json->encode({
		paths => [ sort keys %asked ], expand => \1 }),
		{ 'Content-Type' => 'application/json' });

	same("paths of $rev", join("\n", map { entry($c, $_) } @all),
		join("\n", map { told($_) } @{ $r->json() }));

	my $info = $t->get("$base/revision/$uri?blobs=true")->json();
	my $bytes = 0;

	$bytes += length $data[$_] for values %{ $c->{files} };

	same("info of $rev", join("\n", $oid, $bytes, map { "$_ "
		. length $data[$c->{files}{$_}] } sort keys %{ $c->{files} }),
		join("\n", $info->{sha}, $info->{usedStorage},
			map { "$_->{rfilename} $_->{size}" }
			@{ $info->{siblings} }));

	history($rng, $rev, $uri, $oid);
	history_of($rng, $rev, $uri, $oid);
	changes($rng, $rev, $uri, $oid, oid_of(any($rng)));
	resolve($rev, $uri, $oid, $rng->pick(@paths)) for 1 .. 3;
}

sub history {
	my ($rng, $rev, $uri, $oid) = @_;

	my $until = '';

	if ($rng->chance(30)) {
		my @all = line($oid);

		$oid = $rng->pick(@all);
		$until = '&until=' . $t->sql('SELECT to_char(made_at'
			. " AT TIME ZONE 'UTC',"
			. " 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
			. " FROM xet.hub_commits WHERE oid = '\\x$oid'");
	}

	my $limit = $rng->chance(20) ? 3 : 1000;

	same("history of $rev$until", join("\n", map {
		"$_ $commits{$_}{title}" } line($oid)),
		pages("$base/commits/$uri?limit=$limit$until", sub {
			"$_[0]{id} $_[0]{title}" }, $commits{$oid}{n}));
}

# the ids of a commit and of all commits before it, the newest first

sub line {
	my ($oid) = @_;

	my @line;

	for (; $oid; $oid = $commits{$oid}{parent}) {
		push @line, $oid;
	}

	return @line;
}

# The history of a path: the commits that wrote it, and those that removed it.

sub history_of {
	my ($rng, $rev, $uri, $oid) = @_;

	my $path = $rng->pick(@paths, map { above($_) } @paths);
	my @want = grep {
		my $c = $commits{$_};
		my $old = $c->{parent} ? $commits{$c->{parent}}{made} : {};

		($c->{made}{$path} // '') ne ($old->{$path} // '');
	} line($oid);
	my $limit = $rng->chance(50) ? 2 : 1000;

	same("history of $path in $rev", join("\n", @want),
		pages("$base/commits/$uri/" . ($path =~ s/ /%20/gr)
			. "?limit=$limit", sub { $_[0]{id} }));
}

sub changes {
	my ($rng, $rev, $uri, $oid, $from) = @_;

	my ($new, $old) = map { $commits{$_}{files} } $oid, $from;
	my $limit = $rng->chance(50) ? 3 : 1000;
	my @want = map {
		!defined $old->{$_} ? "$_ added"
			: !defined $new->{$_} ? "$_ removed"
			: $old->{$_} == $new->{$_} ? () : "$_ changed"
	} sort keys %{ { %$old, %$new } };

	same("changes of $rev from $from", join("\n", @want),
		pages("$base/changes/$uri?base=$from&limit=$limit",
			sub { "$_[0]{path} $_[0]{type}" }));
}

# Returns the rows of all pages of a list.

sub pages {
	my ($next, $tell, $count) = @_;

	my @got;

	while ($next) {
		my $r = $t->get($next);

		if ($r->{status} != 200) {
			wrong("$next: " . $r->summary());
			last;
		}

		wrong("count of $next") if ($r->header_value('X-Total-Count')
			// -1) != ($count // -1);

		push @got, map { $tell->($_) } @{ $r->json() };
		$next = following($r);
	}

	return join("\n", @got);
}

sub resolve {
	my ($rev, $uri, $oid, $path) = @_;

	my $n = $commits{$oid}{files}{$path};
	my $r = $t->get("/me/m/resolve/$uri/" . ($path =~ s/ /%20/gr));

	if (!defined $n) {
		wrong("no file $path of $rev: $r->{status}")
			if $r->{status} != 404;
		return;
	}

	wrong("file $path of $rev: $r->{status}")
		if $r->{status} != 200 || $r->{body} ne $data[$n]
			|| $r->header_value('X-Repo-Commit') ne $oid;
}

sub same {
	my ($what, $want, $got) = @_;

	wrong("$what: '$got', not '$want'") if $want ne $got;
}

sub entry {
	my ($c, $path) = @_;

	my $n = $c->{files}{$path};
	my $made = $c->{made}{$path};

	return join(' ', $path, defined $n ? ('file', length $data[$n],
		$n ? sha256_hex($data[$n]) : '') : ('directory', 0, ''),
		$made, $commits{$made}{title});
}

sub told {
	my ($e) = @_;

	return join(' ', $e->{path}, $e->{type}, $e->{size},
		$e->{lfs} ? $e->{lfs}{oid} : '', $e->{lastCommit}{id},
		$e->{lastCommit}{title});
}

sub tree { return pages($_[0], \&told) }

sub following {
	my ($r) = @_;

	return ($r->header_value('Link') // '') =~ m!<http://[^/]+([^>]+)>!
		? $1 : undef;
}

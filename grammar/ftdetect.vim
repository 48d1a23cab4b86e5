" mt.vim -- model texts of mt have the file type mt
autocmd BufNewFile,BufRead *.mt,*.mtp setfiletype mt
